"""Sizes and places: whole numbers that know how C writes them, and indices as digits of mixed radix.

An index into one dimension is a row of digits, the most significant first; each digit is a loop variable or a
part of one. A reshape only regroups digits, so a place in memory comes out as ``row * 64 + i`` and not as a
nest of divisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Extent(int):
    """A size in the given case, and the factors that C multiplies to get it in any case."""

    factors: tuple[str, ...]  # without the number below
    number: int

    def __new__(cls, value: int, factors: tuple[str, ...] = (), number: int | None = None) -> Extent:
        """A plain number unless it has factors."""
        made = super().__new__(cls, value)
        made.factors = factors
        made.number = value if number is None else number
        return made

    @classmethod
    def read(cls, value: int, text: str) -> Extent:
        """From a graph's size: products of names and numbers; anything else is one factor."""
        if text.isdigit():
            return cls(int(text))
        parts = text.split(" * ") if "(" not in text else [text]
        number = 1
        for part in parts:
            number *= int(part) if part.isdigit() else 1
        return cls(value, tuple(part for part in parts if not part.isdigit()), number)

    @property
    def text(self) -> str:
        """As C has it; products are not in brackets."""
        shown = [*self.factors, *([str(self.number)] if self.number != 1 or not self.factors else [])]
        return " * ".join(shown)

    @property
    def atom(self) -> str:
        """As an operand of anything."""
        return f"({self.text})" if " " in self.text and not self.text.startswith("(") else self.text

    def by(self, other: Extent) -> Extent:
        """Their quotient, which has no rest in the given case."""
        factors = list(self.factors)
        left = [factor for factor in other.factors if factor not in factors or factors.remove(factor)]  # type: ignore[func-returns-value]
        if not left and self.number % other.number == 0:
            return Extent(int(self) // int(other), tuple(factors), self.number // other.number)
        return Extent(int(self) // int(other), (f"({self.text} / {other.atom})",), 1)


ONE = Extent(1)


def product(extents: Iterable[Extent]) -> Extent:
    """How many elements there are."""
    value, number = 1, 1
    factors: tuple[str, ...] = ()
    for extent in extents:
        value *= int(extent)
        number *= extent.number
        factors += extent.factors
    return Extent(value, factors, number)


@dataclass(frozen=True)
class Digit:
    """``whole / low % size`` of a variable (or any text) below ``extent``."""

    whole: str
    extent: Extent
    low: Extent
    size: Extent
    depth: int  # of the loop that it changes in

    @property
    def text(self) -> str:
        """As C has it, ready to be an operand."""
        if self.size == 1 and self.low == 1 and self.extent == 1:
            return self.whole
        divided = self.whole if self.low == 1 else f"{self.whole} / {self.low.atom}"
        if self.low * self.size != self.extent:
            divided += f" % {self.size.atom}"
        return f"({divided})" if divided != self.whole else divided

    def split(self, size: Extent) -> tuple[Digit, Digit]:
        """Its upper and its lower part, the lower of this size."""
        upper = Digit(self.whole, self.extent, product((self.low, size)), self.size.by(size), self.depth)
        return upper, Digit(self.whole, self.extent, self.low, size, self.depth)


Digits = tuple[Digit, ...]
Index = tuple[Digits, ...]  # one row of digits a dimension


def variable(name: str, extent: Extent, depth: int) -> Digits:
    """The index that a loop over an extent gives; nothing where there is but one element."""
    return () if extent == 1 and not extent.factors else (Digit(name, extent, ONE, extent, depth),)


def joined(digits: Iterable[Digit]) -> Digits:
    """The same digits, parts of one variable put together again."""
    found: list[Digit] = []
    for digit in digits:
        last = found[-1] if found else None
        if last and last.whole == digit.whole and last.low == digit.low * digit.size:
            size = product((last.size, digit.size))
            if int(digit.low) == 1 and int(size) == int(last.extent):
                size = last.extent
            found[-1] = Digit(digit.whole, digit.extent, digit.low, size, digit.depth)
        else:
            found.append(digit)
    return tuple(found)


def regrouped(digits: Sequence[Digit], shape: Sequence[Extent]) -> Index:
    """The index into a tensor of this shape whose row-major place has these digits."""
    left = list(digits)
    index: list[Digits] = []
    for extent in reversed(shape):
        group: list[Digit] = []
        need = extent
        while need != 1:
            if not left:
                raise ValueError("digits do not fill the shape")
            digit = left.pop()
            if need % digit.size == 0:
                need = need.by(digit.size)
                group.insert(0, digit)
            elif digit.size % need == 0:
                upper, lower = digit.split(need)
                left.append(upper)
                group.insert(0, lower)
                need = ONE
            else:
                return regrouped([_whole(digits)], shape)
        index.insert(0, joined(group))
    return tuple(index)


def place(digits: Iterable[Digit]) -> str:
    """The row-major place that digits stand for."""
    text = ""
    for digit in joined(digits):
        term = digit.text
        if not text:
            text = term
        else:
            text = f"{bracketed(text) if ' + ' in text else text} * {digit.size.atom} + {term}"
    return text or "0"


def bracketed(text: str) -> str:
    """In brackets, unless it is already."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and at < len(text) - 1:
            return f"({text})" if " " in text else text
    return text


def depth(digits: Iterable[Digit]) -> int:
    """The innermost loop that any of them changes in."""
    return max((digit.depth for digit in digits), default=0)


def _whole(digits: Sequence[Digit]) -> Digit:
    extent = product(digit.size for digit in digits)
    return Digit(bracketed(place(digits)), extent, ONE, extent, depth(digits))
