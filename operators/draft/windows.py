"""What convolutions and pooling share: a window that slides over the last dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operators.draft.loops import loop
from operators.draft.operations import Operation
from operators.draft.sizes import Digits, Extent
from operators.draft.values import Values

AXES = ("x", "y", "z")  # x is the innermost


@dataclass(frozen=True)
class Slide:
    """How a window moves, one number a dimension, outermost first."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]

    @classmethod
    def of(cls, node: Operation, rank: int, kernel: list[int] | None = None) -> Slide:
        """From a node's arguments; a pooling without a stride moves by its kernel."""
        stride = (
            kernel if kernel is not None and node["stride"] in (None, []) else several(node["stride"], rank)
        )
        return cls(stride, several(node["padding"], rank, 0), several(node["dilation"], rank))

    @property
    def axes(self) -> list[str]:
        """Names of the dimensions, outermost first."""
        return [AXES[len(self.stride) - 1 - n] for n in range(len(self.stride))]

    def shift(self, n: int, taps: Extent) -> str:
        """What a tap adds to the place: ``kx * 2 - 1``."""
        moved = times(f"k{self.axes[n]}", self.dilation[n]) if taps != 1 else "0"
        return plus(moved, -self.padding[n])

    def inside(self, values: Values, n: int, taps: Extent, extent: Extent) -> str:
        """Write the input's place ``iy``, and go on where it lies outside; its name."""
        axis = self.axes[n]
        place = plus(times(f"o{axis}", self.stride[n]), self.shift(n, taps))
        values.write(f"const int64_t i{axis} = {place};")
        values.write(f"if (i{axis} < 0 || i{axis} >= {extent.text}) {{", "continue;", "}")
        return f"i{axis}"


def leave_taps(values: Values, slide: Slide, taps: list[Extent], lines: list[str]) -> list[str]:
    """The loops over a window, around lines."""
    for axis, extent in zip(reversed(slide.axes), reversed(taps), strict=True):
        lines = loop(f"k{axis}", extent, [*values.leave(), *lines])
    return lines


def leave_places(values: Values, dims: list[tuple[str, Extent]]) -> None:
    """Close the loops over all places, parallel over the outer two.

    Nothing may stand between loops that OpenMP collapses: what was known in the outer one moves inwards.
    """
    bodies = [values.leave() for _ in dims][::-1]
    bodies[1] = bodies[0] + bodies[1]
    bodies[0] = []
    lines: list[str] = []
    for n in reversed(range(len(dims))):
        pragma = ["#pragma omp parallel for collapse(2)"] if n == 0 else []
        lines = loop(*dims[n], [*bodies[n], *lines], *pragma)
    values.write(*lines)


def flattened(index: list[Digits]) -> Digits:
    """All digits in a row."""
    return tuple(digit for digits in index for digit in digits)


def several(value: Any, count: int, default: int = 1) -> list[int]:
    """An argument that is one number or one a dimension."""
    found = value if isinstance(value, list) else [] if value is None else [value]
    if not found:
        return [default] * count
    return [int(number) for number in (found * count if len(found) == 1 else found)]


def times(name: str, factor: int) -> str:
    """A product as C has it."""
    return name if factor == 1 else f"{name} * {factor}"


def plus(text: str, other: int | str) -> str:
    """A sum as C has it, zeros left out."""
    if isinstance(other, int):
        if text == "0" or other == 0:
            return str(other) if text == "0" else text
        return f"{text} {'+' if other > 0 else '-'} {abs(other)}"
    if other == "0":
        return text
    return f"{text} - {other[1:]}" if other.startswith("-") and " " not in other else f"{text} + {other}"
