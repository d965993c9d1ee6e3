"""What kind of data a tensor holds, judged from two independent draws of it."""

from __future__ import annotations

from enum import Enum, auto

import torch
from torch import Tensor

SAMPLED_ROWS = 64
CORNER = 256


class Kind(Enum):
    """How freely a tensor's elements may be exchanged for others."""

    CONSTANT = auto()  # the same in every draw
    WHOLE = auto()  # independent whole numbers: may be shifted, not scaled
    FREE = auto()  # independent floats: may be shifted and scaled a little
    MASKED = auto()  # floats whose zeros always lie at the same places, e.g. a triangle
    ORDERED = auto()  # sorted, symmetric, normalised, …: only a real draw is right


def kind_of(first: Tensor, second: Tensor) -> Kind:
    """The kind of a tensor, from two draws of it."""
    if torch.equal(first, second):
        return Kind.CONSTANT
    if first.dtype is torch.bool:
        return Kind.WHOLE
    if _ordered(first) and _ordered(second):
        return Kind.ORDERED
    if not first.is_floating_point() or bool((first == first.round()).all()):
        return Kind.WHOLE
    if zeros_are_structure(first) and torch.equal(first == 0, second == 0):
        return Kind.MASKED
    return Kind.FREE


def zeros_are_structure(values: Tensor) -> bool:
    """Whether some but not all elements are zero, and more than chance would make so."""
    zeros = values.numel() - int(torch.count_nonzero(values))
    return values.numel() > 1 and 0.005 * values.numel() < zeros < values.numel()


def _ordered(values: Tensor) -> bool:
    if values.dim() == 0 or values.numel() < 4:
        return False
    rows = values.reshape(-1, values.shape[-1])[:SAMPLED_ROWS].double()
    eps = torch.finfo(values.dtype).eps if values.is_floating_point() else 0.0
    if _rows_ordered(rows, eps) or _symmetric(values):
        return True
    return any(_repeats(values, dim) for dim in range(values.dim()))


def _rows_ordered(rows: Tensor, eps: float) -> bool:
    length = rows.shape[1]
    if length < 4:
        return False
    steps = rows.diff(dim=1)
    if bool((steps >= 0).all()) or bool((steps <= 0).all()):
        return True
    spread = rows.amax(1) - rows.amin(1)
    if bool((spread == length - 1).all()) and all(row.unique().numel() == length for row in rows):
        return True  # permutations
    # What rounding explains; sums of independent elements differ by about 0.6 / sqrt(length).
    within = max(8 * eps / length**0.5, 1e-6)
    if _same(rows.sum(1), within):
        return True  # probabilities, one-hot
    whole = bool((rows == rows.round()).all())  # rows of 1 and -1 have one norm without being ordered
    return not whole and _same(rows.norm(dim=1), within)  # unit vectors


def _same(row_values: Tensor, within: float) -> bool:
    """Whether all rows agree on a value that is not zero, and there are rows enough to tell."""
    first = row_values[0]
    differ = (row_values - first).abs() > within * first.abs()
    return bool(first != 0) and row_values.numel() > 1 and not bool(differ.any())


def _symmetric(values: Tensor) -> bool:
    if values.dim() < 2 or values.shape[-1] != values.shape[-2]:
        return False
    corner = values[..., :CORNER, :CORNER]
    return values.shape[-1] > 1 and torch.equal(corner, corner.mT)


def _repeats(values: Tensor, dim: int) -> bool:
    """Whether every slice along a dimension is the same."""
    if values.shape[dim] < 2:
        return False
    first = values.narrow(dim, 0, 1)
    if not torch.equal(first, values.narrow(dim, 1, 1)):
        return False
    return bool((first == values).all())
