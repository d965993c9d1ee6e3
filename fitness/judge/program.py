"""A problem file executed with some constants overridden: its model, its inputs, and calling one on the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree

from fitness.card import ITEM_BYTES, TensorSpec
from fitness.judge.names import c_names, output_names
from fitness.judge.precision import computing_in, widened
from fitness.judge.source import Source
from fitness.judge.usercode import reseeding_ignored, seed_of, seeded, user_code
from fitness.target import ProblemError

WANTED = {
    "Model": "class Model(nn.Module), the reference",
    "get_inputs": "a function get_inputs() that returns the list of arguments of Model.forward",
    "get_init_inputs": "a function get_init_inputs() that returns the list of arguments of Model",
}


@dataclass(frozen=True)
class Signature:
    """Specs of the entry's arguments."""

    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of one argument set."""
        return sum(spec.nbytes for spec in self.inputs + self.parameters + self.outputs)

    def fits(self, other: Signature) -> bool:
        """Whether one kernel can serve both: they differ in extents alone."""
        return self._kinds() == other._kinds()

    def _kinds(self) -> list[tuple[str, str, int]]:
        specs = self.inputs + self.parameters + self.outputs
        return [(spec.name, spec.dtype, len(spec.shape)) for spec in specs]


class Program:
    """One execution of a problem file.

    Args:
        source: the file.
        constants: values of module-level integers to override.

    Raises:
        ProblemError: it does not run, or lacks one of Model, get_inputs and get_init_inputs.
    """

    def __init__(self, source: Source, constants: Mapping[str, int]) -> None:
        self.where = source.where
        self.module = source.execute(constants)
        for name, wanted in WANTED.items():
            if not callable(getattr(self.module, name, None)):
                raise ProblemError(f"{self.where}: has no {name}; add {wanted}")
        if not (isinstance(self.module.Model, type) and issubclass(self.module.Model, nn.Module)):
            raise ProblemError(f"{self.where}: Model is not a torch.nn.Module; derive it from nn.Module")
        self._template: list[Any] = []  # get_inputs' leaves, None where tensors go; filled by the first call
        self._structure: _pytree.TreeSpec | None = None
        self._holes: list[int] = []

    # -- the model -----------------------------------------------------------------------------------

    def build(self, seed: int) -> nn.Module:
        """A fresh model in eval mode, its parameters drawn under ``seed``."""
        todo = "mend it, or get_init_inputs()"
        with seeded(seed), torch.no_grad(), user_code(self.where, "get_init_inputs()", "mend it"):
            given = self.module.get_init_inputs()
            args, kwargs = _call_arguments(given, self.where, "get_init_inputs()")
            with user_code(self.where, "Model(…)", todo):
                model: nn.Module = self.module.Model(*args, **kwargs)
                return model.eval()

    @cached_property
    def skeleton(self) -> nn.Module:
        """The model that calls go through; its parameters are replaced for each call."""
        return self.build(seed_of("skeleton"))

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """Names in the state dict, in order, by the first name of each tensor (tied ones share)."""
        found: dict[int, list[str]] = {}
        for name, value in self.skeleton.state_dict(keep_vars=True).items():
            if isinstance(value, Tensor):
                found.setdefault(id(value), []).append(name)
        return {names[0]: names for names in found.values()}

    def draw_parameters(self, seed: int) -> list[Tensor]:
        """Parameters and buffers of a fresh model, in state_dict order."""
        if not self.aliases:
            return []
        state = self.build(seed).state_dict()
        return [state[name].detach().contiguous() for name in self.aliases]

    def model_over(self, parameters: Sequence[Tensor]) -> nn.Module:
        """A fresh model whose parameters and buffers are the given tensors themselves."""
        model = self.build(seed_of("skeleton"))
        for names, tensor in zip(self.aliases.values(), parameters, strict=True):
            kept = nn.Parameter(tensor, requires_grad=False)
            for name in names:
                path, _, leaf = name.rpartition(".")
                module = model.get_submodule(path)
                if leaf in module._parameters:
                    module._parameters[leaf] = kept
                else:
                    module._buffers[leaf] = tensor
        return model

    # -- the inputs ----------------------------------------------------------------------------------

    def draw_inputs(self, seed: int) -> list[Tensor]:
        """The tensors that ``get_inputs`` returns, contiguous and apart from each other."""
        todo = "mend it so that it returns the arguments of Model.forward"
        with seeded(seed), torch.no_grad(), reseeding_ignored(), user_code(self.where, "get_inputs()", todo):
            given = self.module.get_inputs()
        leaves, structure = _pytree.tree_flatten(_call_arguments(given, self.where, "get_inputs()"))
        self._examine(leaves, structure)
        return [leaves[hole].detach().clone(memory_format=torch.contiguous_format) for hole in self._holes]

    def _examine(self, leaves: list[Any], structure: _pytree.TreeSpec) -> None:
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                _check_tensor(leaf, f"{self.where}: get_inputs()")
            elif not isinstance(leaf, int | float | None):
                raise ProblemError(
                    f"{self.where}: get_inputs() returns a {type(leaf).__name__}; return tensors and numbers only"
                )
        template = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        holes = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        if not holes:
            raise ProblemError(f"{self.where}: get_inputs() returns no tensor; return the arguments of Model.forward")
        if self._structure is None:
            self._template, self._structure, self._holes = template, structure, holes
        elif (template, structure) != (self._template, self._structure):
            raise ProblemError(
                f"{self.where}: get_inputs() returns other numbers from call to call; draw only tensors at random"
            )

    @property
    def scalars(self) -> list[Any]:
        """Numbers among the arguments of forward(): constants of the problem."""
        return [leaf for index, leaf in enumerate(self._template) if index not in self._holes]

    @property
    def input_names(self) -> list[str]:
        """A name per input tensor, from forward()'s parameters."""
        taken = [
            p.name
            for p in inspect.signature(self.module.Model.forward).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ][1:]
        assert self._structure is not None
        args, kwargs = _pytree.tree_unflatten(range(len(self._template)), self._structure)
        names: dict[int, str] = {}
        for index, arg in enumerate(args):
            name = taken[index] if index < len(taken) else f"in{index}"
            names |= _leaf_names(name, arg)
        for name, arg in kwargs.items():
            names |= _leaf_names(name, arg)
        return [names[hole] for hole in self._holes]

    # -- calling one on the other --------------------------------------------------------------------

    def bound(self, model: Callable[..., Any]) -> Callable[..., Any]:
        """``model`` as a function of the input tensors alone."""
        structure, template, holes = self._structure, self._template, self._holes
        assert structure is not None
        args, kwargs = _pytree.tree_unflatten(range(len(template)), structure)
        if not kwargs and list(args) == holes:
            return model

        def call(*inputs: Tensor) -> Any:
            leaves = list(template)
            for hole, tensor in zip(holes, inputs, strict=True):
                leaves[hole] = tensor
            args, kwargs = _pytree.tree_unflatten(leaves, structure)
            return model(*args, **kwargs)

        return call

    def functional(self, *arguments: Tensor) -> Any:
        """The model as a function of inputs and parameters, as one flat row of tensors."""
        count = len(self._holes)
        state = dict(zip(self.aliases, arguments[count:], strict=True))

        def model(*args: Any, **kwargs: Any) -> Any:
            return torch.func.functional_call(self.skeleton, state, args, kwargs)

        return self.bound(model)(*arguments[:count])

    def run(self, inputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[Tensor]:
        """Outputs as the user wrote the model, as a flat list of contiguous tensors."""
        todo = "mend forward() or get_inputs() so that they fit"
        with torch.no_grad(), user_code(self.where, "Model.forward", todo):
            found = self.functional(*inputs, *parameters)
        return self.flatten(found, (*inputs, *parameters))

    def run_in(
        self, dtype: torch.dtype, inputs: Sequence[Tensor], parameters: Sequence[Tensor]
    ) -> list[Tensor]:
        """Outputs with all floating-point work done in ``dtype``."""
        todo = "mend forward() or get_inputs() so that they fit"
        wide, wide_parameters = widened(inputs, dtype), widened(parameters, dtype)
        with user_code(self.where, "Model.forward", todo), computing_in(dtype):
            found = self.functional(*wide, *wide_parameters)
        return self.flatten(found, (*wide, *wide_parameters))

    def flatten(self, found: object, arguments: Sequence[Tensor] = ()) -> list[Tensor]:
        """The tensors of what forward() returned; those that share memory with an argument are copied."""
        leaves = [leaf for leaf in _pytree.tree_leaves(found) if leaf is not None]
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ProblemError(
                    f"{self.where}: Model.forward returns a {type(leaf).__name__}; return a tensor, or several"
                )
            _check_tensor(leaf, f"{self.where}: Model.forward")
        if not leaves:
            raise ProblemError(f"{self.where}: Model.forward returns nothing; return a tensor, or several")
        taken = {t.untyped_storage()._cdata for t in arguments}
        return [
            leaf.detach().clone(memory_format=torch.contiguous_format)
            if leaf.untyped_storage()._cdata in taken
            else leaf.detach().contiguous()
            for leaf in leaves
        ]

    def signature_of(
        self, inputs: Sequence[Tensor], parameters: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> Signature:
        """Names, shapes and dtypes of the entry's arguments."""
        names = c_names(self.input_names)
        parameter_names = c_names(self.aliases, taken=names)
        return Signature(
            _specs(names, inputs),
            _specs(parameter_names, parameters),
            _specs(output_names(len(outputs)), outputs),
        )

    def signature(self) -> Signature:
        """Of one real run."""
        inputs, parameters = self.draw_inputs(0), self.draw_parameters(0)
        return self.signature_of(inputs, parameters, self.run(inputs, parameters))


def imagined_signature(source: Source, constants: Mapping[str, int]) -> Signature | None:
    """The signature without computing or allocating anything, or None where the file can't be run that way."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return Program(source, constants).signature()  # of its own: what it caches is not real
    except ProblemError:
        return None


def _call_arguments(given: object, where: str, what: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a call from a list, a dict, or a list of both: ``[[…], {…}]``."""
    if isinstance(given, Mapping):
        return (), dict(given)
    if not isinstance(given, list | tuple):
        raise ProblemError(f"{where}: {what} returns a {type(given).__name__}; return a list of arguments")
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], dict):
        return tuple(given[0]), given[1]
    return tuple(given), {}


def _check_tensor(tensor: Tensor, place: str) -> None:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.device.type != "cpu":
        raise ProblemError(
            f"{place} returns a tensor on {tensor.device}; leave it on the CPU, the judge puts it where it belongs"
        )
    if tensor.layout != torch.strided:
        raise ProblemError(f"{place} returns a {tensor.layout} tensor; return a dense one")
    if dtype not in ITEM_BYTES:
        raise ProblemError(f"{place} returns a {dtype} tensor; use one of {', '.join(ITEM_BYTES)}")


def _leaf_names(name: str, arg: Any) -> dict[int, str]:
    leaves = _pytree.tree_leaves(arg)
    return {leaf: name if arg == leaf else f"{name}_{n}" for n, leaf in enumerate(leaves)}


def _specs(names: Sequence[str], tensors: Sequence[Tensor]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(name, tuple(int(extent) for extent in tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in zip(names, tensors, strict=True)
    )
