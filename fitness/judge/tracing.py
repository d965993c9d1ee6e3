"""From the user's model to a ``Graph``: run once on imagined tensors, every operation written down.

Composed operations are taken apart as far as the framework knows how to; some dozens of basic ones stay.
Each case is traced alone; where several traces are alike, their sizes are compared (``extents``).
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from fitness.card import ProblemCard, TensorSpec
from fitness.judge.extents import unified
from fitness.judge.loaded import LoadedCase
from fitness.judge.place import in_place, place
from fitness.judge.problem import Problem
from fitness.judge.signature import dtype_name
from populations.graph import Graph, Node

MOST_NODES = 400
MOST_CONSTANTS = 4096  # elements of a tensor that is part of the model's code
# Beside the core operations, these are taken apart, too.
MORE = (
    "_adaptive_avg_pool2d", "_fused_rms_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_prelu_kernel", "_unsafe_view", "addcdiv", "addcmul", "addmv",
    "aminmax", "baddbmm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu",
    "channel_shuffle", "count_nonzero", "dot", "elu", "embedding", "eye", "frobenius_norm", "gelu", "glu",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "heaviside", "huber_loss", "im2col",
    "index_select", "leaky_relu", "lerp", "linalg_vector_norm", "linspace", "log_sigmoid_forward",
    "logaddexp", "logaddexp2", "logsumexp", "masked_fill", "mish", "mse_loss", "multi_margin_loss", "mv",
    "nan_to_num", "native_batch_norm", "native_dropout", "native_group_norm", "native_layer_norm",
    "new_full", "new_ones", "new_zeros", "nll_loss2d_forward", "nll_loss_forward", "ones_like",
    "pixel_shuffle", "pixel_unshuffle", "prelu", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
    "replication_pad1d", "replication_pad2d", "replication_pad3d", "rms_norm", "roll", "rot90",
    "rrelu_with_noise", "selu", "silu", "sinc", "smooth_l1_loss", "soft_margin_loss", "softplus",
    "softshrink", "square", "std", "std_mean", "threshold", "trace", "tril", "triu", "upsample_bilinear2d",
    "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "xlogy",
    "zeros_like",
)  # fmt: skip


class Untraceable(Exception):
    """There is no graph of this model; says why."""


def traced(problem: Problem) -> ProblemCard:
    """The problem's card with its graph, or with a note that says why there is none."""
    card = problem.card
    try:
        return replace(card, graph=trace(problem.cases))
    except Untraceable as why:
        return replace(card, notes=(*card.notes, f"the reference could not be traced: {why}"))


def trace(cases: Sequence[LoadedCase]) -> Graph:
    """The graph of the first case, with sizes that the others explain.

    Raises:
        Untraceable: the model's path depends on data, or it is too long.
    """
    graphs = [_traced(cases[0])]
    kept = [cases[0].case]
    for loaded in cases[1:]:
        try:
            graph = _traced(loaded)
        except Untraceable:
            continue
        graphs.append(graph)
        kept.append(loaded.case)
    return unified(graphs, kept)


def _traced(loaded: LoadedCase) -> Graph:
    read = loaded.case.inputs + loaded.case.parameters

    def model(*tensors: Tensor) -> list[Tensor]:
        return loaded.flatten(loaded.functional(*tensors))

    examples = [torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=place()) for spec in read]
    try:
        with _plain():
            with in_place():
                made = _written_down(model, examples)
            if any(
                str(node.target).partition(".")[2].partition(".")[0].endswith("_")
                for node in made.graph.nodes
            ):
                made = _written_down(made, examples)  # taking apart may bring writes in place back
    except Exception as why:  # the user's code and the framework's tracer may raise anything
        first = str(why).strip().partition("\n")[0][:160]
        raise Untraceable(f"{type(why).__name__}: {first}") from None
    made.graph.eliminate_dead_code()
    if len(made.graph.nodes) > MOST_NODES:
        raise Untraceable(f"it has {len(made.graph.nodes)} operations, more than {MOST_NODES}")
    return _Writer(made, read).graph()


def _written_down(model: Callable[..., Any], examples: Sequence[Tensor]) -> fx.GraphModule:
    return make_fx(
        torch.func.functionalize(model),
        decomposition_table=_decompositions(),
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
    )(*examples)


@contextmanager
def _plain() -> Iterator[None]:
    """No fused operations, no gradients, no warnings."""
    fused = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch._C._set_mkldnn_enabled(fused)


def _decompositions() -> Mapping[Any, Any]:
    aten = torch.ops.aten
    table = dict(core_aten_decompositions())
    table.update(get_decompositions([getattr(aten, name) for name in MORE if hasattr(aten, name)]))
    for packet in (aten._softmax, aten._log_softmax):
        table.pop(packet.default, None)
    return table


class _Writer:
    """Writes the nodes of one traced module."""

    def __init__(self, made: fx.GraphModule, read: Sequence[TensorSpec]) -> None:
        self._made = made
        self._read = list(read)
        self._names: dict[fx.Node, str] = {}
        self._taken: set[str] = {spec.name for spec in read}

    def graph(self) -> Graph:
        nodes: list[Node] = []
        outputs: tuple[str, ...] = ()
        waiting = list(self._read)
        for node in self._made.graph.nodes:
            if node.op == "placeholder":
                spec = waiting.pop(0)
                self._names[node] = spec.name
                nodes.append(
                    Node(spec.name, "input", {}, spec.shape, tuple(map(str, spec.shape)), spec.dtype)
                )
            elif node.op == "output":
                outputs = tuple(self._names[found] for found in node.args[0])
            else:
                nodes.append(self._node(node))
        return Graph(tuple(nodes), outputs)

    def _node(self, node: fx.Node) -> Node:
        name = node.name
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self._names[node] = name
        if node.op == "get_attr":
            tensor = getattr(self._made, str(node.target))
            if not isinstance(tensor, Tensor) or tensor.numel() > MOST_CONSTANTS:
                raise Untraceable("its code holds a large tensor that is no parameter and no buffer")
            values = repr((tensor.double() if tensor.is_floating_point() else tensor).flatten().tolist())
            return _made(name, "constant", {"values": values}, tensor)
        if node.target is operator.getitem:
            source, which = node.args
            return _made(name, "getitem", {"self": self._text(source), "index": str(which)}, node.meta["val"])
        schema = node.target._schema  # type: ignore[union-attr]
        arguments = {}
        for position, formal in enumerate(schema.arguments):
            if position < len(node.args) and not formal.kwarg_only:
                value = node.args[position]
            else:
                value = node.kwargs.get(formal.name, formal.default_value)
            arguments[formal.name] = self._text(value)
        return _made(name, str(node.target), arguments, node.meta["val"])

    def _text(self, value: object) -> str:
        if isinstance(value, fx.Node):
            return f"%{self._names[value]}"
        if isinstance(value, list | tuple):
            return f"[{', '.join(self._text(item) for item in value)}]"
        if isinstance(value, torch.dtype):
            return repr(str(value).removeprefix("torch."))
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        return "None"  # layouts, devices, memory formats


def _made(name: str, op: str, arguments: dict[str, str], found: object) -> Node:
    if not isinstance(found, Tensor):
        return Node(name, op, arguments, (), (), "tuple")
    shape = tuple(int(extent) for extent in found.shape)
    return Node(name, op, arguments, shape, tuple(map(str, shape)), dtype_name(found))
