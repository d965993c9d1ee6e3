"""The table: what honest rounding can do to each operation, per element, before the output is rounded.

``u`` is the unit roundoff of the accumulation, ``y`` the exact result, ``x`` the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny  # results below it may be flushed or lose their digits


@dataclass(frozen=True)
class Operands:
    """What a line of the table may look at.

    ``line`` is the declaration, e.g. {"operation": "sum", "dim": 1}.
    """

    line: Mapping[str, Any]
    inputs: list[Tensor]
    parameters: list[Tensor]
    y: Tensor
    u: float

    @property
    def x(self) -> Tensor:
        """The operand: input 0 unless the line says ``input``."""
        return self.inputs[int(self.line.get("input", 0))]

    @property
    def dim(self) -> int | tuple[int, ...]:
        """The reduced dimension, or several of them."""
        dim = self.line.get("dim", -1)
        return tuple(dim) if isinstance(dim, list | tuple) else int(dim)

    @property
    def length(self) -> int:
        """Number of elements that a reduction over ``dim`` takes together."""
        dims = self.dim if isinstance(self.dim, tuple) else (self.dim,)
        return math.prod(self.x.shape[d] for d in dims)

    def operand(self, index: int) -> Tensor | None:
        """The index-th operand: inputs first, then parameters; None where there are fewer."""
        operands = self.inputs + self.parameters
        return operands[index] if index < len(operands) else None


@dataclass(frozen=True)
class Allowance:
    """What a line of the table allows.

    Attributes:
        error: absolute error of each element.
        n: length of the reduction behind one element.
        typical: for sums, how large the result is where signs are random: the root of the sum of squares.
    """

    error: Tensor
    n: int = 0
    typical: Tensor | None = None


Line = Callable[[Operands], Allowance]


def exact(at: Operands) -> Allowance:
    """Nothing rounds but the output, and that only where its dtype cannot hold the value."""
    return Allowance(torch.zeros_like(at.y))


def exponential(at: Operands) -> Allowance:
    """exp, tanh, sigmoid: an argument is wrong by u·|x|, which the exponential makes relative."""
    return Allowance(at.u * at.y.abs() * (8 + 4 * at.x.abs()) + SMALLEST_NORMAL)


def gelu(at: Operands) -> Allowance:
    """As the exponential, and 1 + tanh cancels for negative x."""
    size = at.x.abs()
    return Allowance(at.u * (at.y.abs() * (8 + 4 * size) + 16 * size))


def silu(at: Operands) -> Allowance:
    """A sigmoid and one product."""
    size = at.x.abs()
    return Allowance(at.u * at.y.abs() * (10 + 4 * size) + SMALLEST_NORMAL * size)


def total(at: Operands) -> Allowance:
    """Sum over ``dim``."""
    keep = at.y.dim() == at.x.dim()
    squares = at.x.square().sum(at.dim, keepdim=keep)
    return _accumulated(at, at.x.abs().sum(at.dim, keepdim=keep), squares, at.length)


def mean(at: Operands) -> Allowance:
    """Mean over ``dim``: the sum's error, shared out."""
    keep = at.y.dim() == at.x.dim()
    squares = at.x.square().mean(at.dim, keepdim=keep) / at.length
    return _accumulated(at, at.x.abs().mean(at.dim, keepdim=keep), squares, at.length)


def matmul(at: Operands) -> Allowance:
    """``operand 0 @ operand 1``, batched or not."""
    a, b = at.operand(0), at.operand(1)
    assert a is not None and b is not None
    return _accumulated(at, a.abs() @ b.abs(), a.square() @ b.square(), a.shape[-1])


def linear(at: Operands) -> Allowance:
    """``x @ weight.T + bias``; weight and bias follow the input, the bias may be missing."""
    weight, bias = at.operand(1), at.operand(2)
    assert weight is not None
    size = functional.linear(at.x.abs(), weight.abs(), None if bias is None else bias.abs())
    squares = functional.linear(at.x.square(), weight.square(), None if bias is None else bias.square())
    return _accumulated(at, size, squares, weight.shape[-1])


def convolution(at: Operands) -> Allowance:
    """1-, 2- or 3-dimensional; ``stride``, ``padding``, ``dilation``, ``groups`` as the line says."""
    weight, bias = at.operand(1), at.operand(2)
    assert weight is not None
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[weight.dim() - 3]
    geometry = {k: at.line[k] for k in ("stride", "padding", "dilation", "groups") if k in at.line}
    size = convolve(at.x.abs(), weight.abs(), None if bias is None else bias.abs(), **geometry)
    squares = convolve(at.x.square(), weight.square(), None if bias is None else bias.square(), **geometry)
    return _accumulated(at, size, squares, weight[0].numel())


def transposed_convolution(at: Operands) -> Allowance:
    """As ``convolution``; the line may also say ``output_padding``."""
    weight, bias = at.operand(1), at.operand(2)
    assert weight is not None
    convolve = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)[
        weight.dim() - 3
    ]
    known = ("stride", "padding", "output_padding", "dilation", "groups")
    geometry = {k: at.line[k] for k in known if k in at.line}
    size = convolve(at.x.abs(), weight.abs(), None if bias is None else bias.abs(), **geometry)
    squares = convolve(at.x.square(), weight.square(), None if bias is None else bias.square(), **geometry)
    terms = weight[:, 0].numel() // int(at.line.get("groups", 1))
    return _accumulated(at, size, squares, terms)


def softmax(at: Operands) -> Allowance:
    """One sum, and exponentials of the distance to the maximum."""
    below = at.x.amax(at.dim, keepdim=True) - at.x
    n = at.length
    return Allowance(at.y.abs() * at.u * (32 + _drift(n) + 4 * below) + SMALLEST_NORMAL, n)


def logsumexp(at: Operands) -> Allowance:
    """The sum's relative error is the logarithm's absolute one; the maximum is added last and may cancel."""
    keep = at.y.dim() == at.x.dim()
    largest = at.x.amax(at.dim, keepdim=keep).abs()
    n = at.length
    return Allowance(at.u * (32 + _drift(n) + 4 * (at.y.abs() + largest)) + SMALLEST_NORMAL, n)


def log_softmax(at: Operands) -> Allowance:
    """x less the logsumexp."""
    largest = at.x.amax(at.dim, keepdim=True).abs()
    n = at.length
    return Allowance(at.u * (32 + _drift(n) + 4 * (at.y.abs() + at.x.abs() + largest)), n)


def rms_norm(at: Operands) -> Allowance:
    """A sum of squares cannot cancel: everything is relative."""
    n = at.length
    return Allowance(at.y.abs() * at.u * (16 + math.sqrt(n)) + SMALLEST_NORMAL, n)


def layer_norm(at: Operands) -> Allowance:
    """Subtracting the mean cancels, and so may adding the bias; gain and bias follow the input, if any."""
    average = at.x.abs().mean(at.dim, keepdim=True)  # its error is a sum's: it does not shrink with the mean
    sigma = (at.x.var(at.dim, keepdim=True, correction=0) + at.line.get("eps", 1e-5)).sqrt()
    return _normalised(at, at.operand(1), at.operand(2), average, sigma, at.length)


def batch_norm(at: Operands) -> Allowance:
    """In eval mode: weight, bias, running mean and variance follow the input; channels are dimension 1."""
    shape = [1, -1] + [1] * (at.x.dim() - 2)
    vectors = [at.operand(i) for i in range(1, 5)]
    weight, bias, average, variance = (v.reshape(shape) for v in vectors if v is not None)
    sigma = (variance + at.line.get("eps", 1e-5)).sqrt()
    return _normalised(at, weight, bias, average.abs(), sigma, 1)


def scan(at: Operands) -> Allowance:
    """Running sum along ``dim``; the error grows with the position."""
    assert isinstance(at.dim, int)
    shape = [1] * at.x.dim()
    shape[at.dim] = -1
    position = torch.arange(1, at.length + 1, dtype=at.x.dtype, device=at.x.device).reshape(shape)
    allowed = at.u * (8 + position.sqrt()) * at.x.abs().cumsum(at.dim)
    return Allowance(allowed, at.length, at.x.square().cumsum(at.dim).sqrt())


def _drift(n: int) -> float:
    """Rounding of a sum of exponentials, in u; where they are nearly equal all roundings go one way."""
    return math.sqrt(n) + n / 64  # vector code keeps 16 sums or more, each drifts by an eighth of its length


def _accumulated(at: Operands, size: Tensor, squares: Tensor, n: int) -> Allowance:
    return Allowance(at.u * (8 + math.sqrt(n)) * size, n, squares.sqrt())


def _normalised(
    at: Operands, gain: Tensor | None, bias: Tensor | None, average: Tensor, sigma: Tensor, n: int
) -> Allowance:
    root = math.sqrt(n)
    size = (at.x.abs() + average) / sigma * (8 + root)
    if gain is not None:
        size = size * gain.abs()
    allowed = at.u * ((16 + root) * at.y.abs() + size)
    if bias is not None:
        allowed = allowed + 2 * at.u * bias.abs()
    return Allowance(allowed + SMALLEST_NORMAL, n)


TABLE: dict[str, Line] = {
    **dict.fromkeys(("copy", "relu", "max", "min", "gather", "add", "sub", "mul", "argmax", "argmin"), exact),
    **dict.fromkeys(("exp", "tanh", "sigmoid"), exponential),
    "gelu": gelu,
    "silu": silu,
    "sum": total,
    "mean": mean,
    "matmul": matmul,
    "linear": linear,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), transposed_convolution),
    "softmax": softmax,
    "logsumexp": logsumexp,
    "log_softmax": log_softmax,
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    **dict.fromkeys(("scan", "cumsum"), scan),
}
