"""How checking data is drawn: the named distributions, and parameters that no kernel can guess."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from fitness.judge.place import place
from fitness.judge.structure import Kind, zeros_are_structure

MOST_NANS = 8  # a pool or a stride may leave out where one stands
Shape = tuple[int, ...]
Draw = Callable[[Shape, torch.dtype, Generator], Tensor]


def _normal(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    return torch.randn(shape, generator=rng)


def _rowscale(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    rows = (*shape[:-1], 1) if shape else ()
    scale = 10.0 ** (2 * torch.rand(rows, generator=rng) - 1)
    return torch.randn(shape, generator=rng) * scale + 2 * torch.randn(rows, generator=rng)


def _uniform(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    return 2 * torch.rand(shape, generator=rng) - 1


def _spiky(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    base = 0.1 * torch.randn(shape, generator=rng)
    spikes = torch.rand(shape, generator=rng) < 1 / 64
    return torch.where(spikes, 20 * torch.randn(shape, generator=rng), base)


def _large(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    return 120 * (2 * torch.rand(shape, generator=rng) - 1)  # exp overflows float32 at 88.7


def _tiny(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    rows = (*shape[:-1], 1) if shape else ()
    scale = 10.0 ** (-2 - 4 * torch.rand(rows, generator=rng))  # about where eps of a norm decides
    kept = torch.rand(rows, generator=rng) >= 1 / 8
    if kept.numel() > 1:  # one row of zeros at least
        kept.view(-1)[torch.randint(kept.numel(), (1,), generator=rng)] = False
    return torch.randn(shape, generator=rng) * scale * kept


def _ties(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    values = torch.randn(shape, generator=rng)
    if values.dim() == 0 or values.numel() == 0:
        return values
    # The maximum of each row stands in about eight places.
    tied = torch.rand(shape, generator=rng) < 8 / shape[-1]
    return torch.where(tied, values.amax(-1, keepdim=True), values)


def _special(shape: Shape, dtype: torch.dtype, rng: Generator) -> Tensor:
    values = torch.randn(shape, generator=rng)
    tiny = torch.finfo(dtype).smallest_normal
    signs = torch.where(torch.rand(shape, generator=rng) < 0.5, -1.0, 1.0)
    chance = torch.rand(shape, generator=rng)
    values = torch.where(chance < 1 / 8, 0.0 * signs, values)
    subnormal = tiny * torch.rand(shape, generator=rng, dtype=torch.float64) * signs
    return torch.where(chance > 7 / 8, subnormal.to(values.dtype), values)


def _nonfinite(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    """One infinity, and NaN in other rows: together in one row, the infinity would hide the NaN."""
    values = torch.randn(shape, generator=rng)
    if values.numel() == 0:
        return values
    rows = values.view(-1, shape[-1]) if shape else values.view(1, 1)
    order = torch.randperm(len(rows), generator=rng)
    columns = torch.randint(rows.shape[1], (1 + MOST_NANS,), generator=rng)
    rows[order[0], columns[0]] = float("inf")
    broken = order[1 : 1 + min(MOST_NANS, len(rows) // 2)] if len(rows) > 1 else order
    rows[broken, columns[1 : 1 + len(broken)]] = float("nan")
    return values


def _integers(shape: Shape, _dtype: torch.dtype, rng: Generator) -> Tensor:
    return torch.randint(-1, 2, shape, generator=rng).to(torch.float32)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": _normal,
    "rowscale": _rowscale,  # normal, each row with a scale and a shift of its own
    "uniform": _uniform,  # between -1 and 1
    "spiky": _spiky,  # mostly small, one in 64 large
    "large": _large,  # up to 120 either way
    "tiny": _tiny,  # 1e-6 to 1e-2, and rows of zeros
    "ties": _ties,  # the maximum of each row stands in several places
    "special": _special,  # zeros of both signs and subnormals among normal values
    "nonfinite": _nonfinite,  # one infinity, and NaN in up to eight other rows
    "integers": _integers,  # -1, 0 and 1: sums are exact
}


def generator(seed: int) -> Generator:
    """A source of chance on the device where the judge draws its data."""
    return Generator(device=place()).manual_seed(seed)


def redrawn(own: Tensor, kind: Kind, distribution: str | None, rng: Generator) -> Tensor:
    """An input as the checks want it.

    Args:
        own: as ``get_inputs`` drew it.
        kind: what it is; only freely random floats and triangles of them follow a distribution.
        distribution: a name of ``DISTRIBUTIONS``, or None to keep ``own``.
        rng: source of chance.
    """
    if kind is Kind.CONSTANT:
        return perturbed(own, rng)
    if distribution is None or kind not in (Kind.FREE, Kind.MASKED):
        return own
    values = DISTRIBUTIONS[distribution](tuple(own.shape), own.dtype, rng).to(own.dtype)
    return torch.where(own == 0, own, values) if kind is Kind.MASKED else values


def perturbed(own: Tensor, rng: Generator) -> Tensor:
    """Other values of the same nature, so that a weight of ones or a bias of zeros can't be left out.

    Positive stays positive, an infinity stays one, and zeros that form a pattern (a mask) stay zeros.
    """
    if not own.is_floating_point():
        return own
    factor = 0.5 + torch.rand(own.shape, generator=rng)
    shift = 0.1 * torch.rand(own.shape, generator=rng)
    if zeros_are_structure(own):
        shift = shift * (own != 0)
    return (own * factor + shift).to(own.dtype)
