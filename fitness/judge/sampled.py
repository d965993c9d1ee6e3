"""An error bound for a reference that declares none: run it with every operation a little wrong, and see.

The float64 reference runs several times while each operation's inputs and outputs get independent relative
noise, as large as the table of ``forward_models`` allows an honest float32 implementation of it. The bound of
an element is ``MARGIN`` times the root mean square of what this does to it. What the model cannot see, it
gets wrong: an algorithm with other intermediate values than the reference's (another order of terms that
cancel, say) and operations that it takes for elementwise though they reduce.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from fitness.judge.inputs import generator
from fitness.judge.place import place

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny
Reference = Callable[[list[Tensor], list[Tensor]], Sequence[Tensor]]

U = 2.0**-24
MARGIN = 3.0
SAMPLES = 8
SAMPLES_OF_FEW = 32  # where an output has too few elements to learn from its neighbours
SURELY = 8  # times as many where a verdict hangs on the estimate: a row's elements are off together
FEW = 64
POOL_SIZE = 1_000_003  # prime, so that no two rows of a matrix see the same window of noise
NEIGHBOURHOOD = 16  # elements to either side that share an estimate
NEIGHBOURS = 0.5  # an element is allowed at least this share of its neighbours' bound

# Nothing rounds in these; views are known by themselves.
_EXACT = """
    abs alias amax amin argmax argmin cat ceil clamp clamp_max clamp_min clone constant_pad_nd copy detach
    embedding fill flip floor gather hardtanh im2col index index_put index_select isnan lift lift_fresh
    masked_fill max max_pool2d_with_indices max_pool3d_with_indices maximum min minimum neg reflection_pad1d
    reflection_pad2d relu repeat replication_pad2d roll round scatter select_scatter sign slice_scatter sort
    stack topk tril triu trunc where zero zeros_like ones_like full_like empty_like new_empty new_full
    new_ones new_zeros rand_like randn_like upsample_nearest2d adaptive_max_pool2d _to_copy _unsafe_view
    _reshape_copy
    """
# Sums of products: their error is measured against the result, and against what random signs would give.
_LINEAR = """
    sum mean mm bmm addmm baddbmm mv addmv dot vdot convolution _convolution cumsum avg_pool1d avg_pool2d
    avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
    """
EXACT = frozenset(_EXACT.split())
LINEAR = frozenset(_LINEAR.split())
EXPONENTIAL_SUMS = frozenset(("_softmax", "_log_softmax", "logsumexp", "_safe_softmax"))
PRODUCTS = frozenset(("cumprod", "prod"))


def sampled_bounds(
    reference: Reference,
    inputs: list[Tensor],
    parameters: list[Tensor],
    outputs: Sequence[Tensor],
    *,
    surely: bool = False,
) -> list[Tensor]:
    """Allowed absolute error of each output's elements, before the output is rounded.

    Args:
        reference: computes the outputs in float64; deterministic.
        inputs, parameters: its arguments, in float64 where floating.
        outputs: its results on them.
        surely: from ``SURELY`` times as many samples: within a fifth or so of what countless ones would give.
    """
    few = any(y.numel() < FEW or not y.is_floating_point() for y in outputs)
    samples = (SAMPLES_OF_FEW if few else SAMPLES) * (SURELY if surely else 1)
    noise = Noise()
    errors = [torch.zeros(y.shape, dtype=torch.float64, device=y.device) for y in outputs]
    with torch.no_grad(), sdpa_kernel([SDPBackend.MATH]):
        for _ in range(samples):
            with noise:
                disturbed = reference(inputs, parameters)
            for error, y, other in zip(errors, outputs, disturbed, strict=True):
                difference = (other.double() - y.double()).nan_to_num_(0.0, 0.0, 0.0)
                if y.is_floating_point():
                    error += difference.square_() / samples
                else:  # a whole number may differ where noise makes it differ
                    torch.maximum(error, difference.abs_(), out=error)
    return [
        MARGIN * _with_neighbours(error) + SMALLEST_NORMAL if y.is_floating_point() else error
        for error, y in zip(errors, outputs, strict=True)
    ]


class Noise(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, every operation that rounds returns what slightly wrong operands would give."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = generator(0x5EED)
        self._pool = _pool(place())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        in_place = func.overloadpacket.__name__.endswith("_")
        name = func.overloadpacket.__name__.removesuffix("_")
        if func.is_view or name in EXACT or "out" in kwargs or not _operands(args):
            return func(*args, **kwargs)
        result = self._disturbed(name, func, args, kwargs, clone_first=in_place)
        return args[0].copy_(result) if in_place else result

    def _disturbed(
        self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, clone_first: bool
    ) -> Any:
        if clone_first:
            args = (args[0].clone(), *args[1:])
        if name in LINEAR and not clone_first:
            y = func(*args, **kwargs)
            squares = tree_map(_squared, (args, kwargs))
            n = _terms(name, args, y)
            typical = (
                (func(*squares[0], **squares[1]) / (n if _averages(name) else 1)).clamp_min_(0.0).sqrt_()
            )
            return y + U * (8 + n**0.5) * torch.maximum(typical, y.abs()) * self._draw(y)
        before, after = _amplitudes(name, args)
        result = func(*tree_map(lambda t: self._relative(t, before), args), **kwargs)
        if name == "gelu":  # 1 + erf cancels for negative x
            result = result + U * 16 * args[0] * self._draw(result)
        return tree_map(lambda t: self._relative(t, after), result)

    def _relative(self, value: Any, amplitude: float) -> Any:
        if not _rounds(value):
            return value
        return value * (1 + U * amplitude * self._draw(value))

    def _draw(self, like: Tensor) -> Tensor:
        """Noise shaped ``like``: a window of the pool, which is drawn once because drawing is slow."""
        offset = int(torch.randint(POOL_SIZE, (), generator=self._generator, device=place()))
        wanted = offset + like.numel()
        pool = self._pool if wanted <= POOL_SIZE else self._pool.repeat(-(-wanted // POOL_SIZE))
        return pool[offset:wanted].reshape(like.shape)


@lru_cache(maxsize=1)
def _pool(device: torch.device) -> Tensor:
    """Uniform noise of variance one; the same for every bound, since drawing it takes longer than most."""
    chance = torch.Generator(device).manual_seed(0xB00)
    uniform = torch.rand(POOL_SIZE, generator=chance, dtype=torch.float64, device=device)
    return (2 * uniform - 1) * math.sqrt(3)


def _amplitudes(name: str, args: tuple[Any, ...]) -> tuple[float, float]:
    """Relative noise of inputs and of outputs, in units of u."""
    x = _operands(args)[0]
    if name in EXPONENTIAL_SUMS:
        n = _extent(x, args[1])
        return 8.0, 32 + math.sqrt(n) + n / 64
    if name in PRODUCTS:
        root = math.sqrt(_extent(x, args[1] if len(args) > 1 else None))
        return 8 + root, 16 + root
    if "norm" in name or "var" in name or "std" in name:
        root = math.sqrt(_normalised(name, args, x))
        return 8 + root, 16 + root
    return 4.0, 8.0


def _normalised(name: str, args: tuple[Any, ...], x: Tensor) -> int:
    """How many elements one statistic is taken over."""
    if name.startswith("native_layer_norm") or "rms_norm" in name:
        return math.prod(int(extent) for extent in args[1])
    if "batch_norm" in name:
        training = any(a is True for a in args)
        return x.numel() // x.shape[1] if training else 1
    if name == "native_group_norm":
        return math.prod(x.shape[1:]) // int(args[6])
    at = 2 if name in ("linalg_vector_norm", "norm") else 1  # after the order of the norm
    return _extent(x, args[at] if len(args) > at else None)


def _extent(x: Tensor, dim: Any) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int | list | tuple) or dim == [] or x.dim() == 0:
        return x.numel()
    return math.prod(x.shape[d] for d in ([dim] if isinstance(dim, int) else dim))


def _terms(name: str, args: tuple[Any, ...], y: Tensor) -> int | Tensor:
    """How many products one element of a linear operation sums."""
    if "convolution" in name:
        weight, transposed, groups = args[1], args[6], args[8]
        return int(weight[:, 0].numel() // groups if transposed else weight[0].numel())
    if name in ("mm", "bmm", "mv", "dot", "vdot"):
        return int(args[0].shape[-1])
    if name in ("addmm", "baddbmm", "addmv"):
        return int(args[1].shape[-1]) + 1
    if name == "cumsum":
        shape = [-1 if d == args[1] % y.dim() else 1 for d in range(y.dim())]
        return torch.arange(1, y.shape[args[1]] + 1, device=y.device).reshape(shape) if y.dim() else 1
    return max(1, int(args[0].numel()) // max(1, y.numel()))


def _with_neighbours(mean_square: Tensor) -> Tensor:
    """Root of the estimate, which a few samples leave noisy, held up by that of its neighbours in the row."""
    if mean_square.dim() == 0 or mean_square.shape[-1] <= NEIGHBOURHOOD:
        around = _row_rms(mean_square)
    else:
        rows = mean_square.reshape(1, -1, mean_square.shape[-1])
        window = functional.avg_pool1d(
            rows, 2 * NEIGHBOURHOOD + 1, stride=1, padding=NEIGHBOURHOOD, count_include_pad=False
        )
        around = window.reshape(mean_square.shape).clamp_min(0.0).sqrt()
    return torch.maximum(mean_square.sqrt(), NEIGHBOURS * around)


def _row_rms(square: Tensor) -> Tensor:
    """Root mean square over the last dimensions, as many as make a pool; keeps dimensions."""
    dims, pooled = [], 1
    for d in range(square.dim() - 1, -1, -1):
        if pooled >= NEIGHBOURHOOD:
            break
        dims.append(d)
        pooled *= square.shape[d]
    return square.mean(dims, keepdim=True).sqrt() if dims else square.sqrt()


def _operands(args: tuple[Any, ...]) -> list[Tensor]:
    flat = [a for arg in args for a in (arg if isinstance(arg, list | tuple) else [arg])]
    return [a for a in flat if _rounds(a)]


def _rounds(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _averages(name: str) -> bool:
    return name == "mean" or "avg_pool" in name


def _squared(value: Any) -> Any:
    return value.square() if _rounds(value) else value
