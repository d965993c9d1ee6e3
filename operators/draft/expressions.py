"""C expressions for one element: their text, type, and how tightly they bind."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from operators.draft.operations import Undraftable

ATOM, PRODUCT, SUM, LOOSE = 3, 2, 1, 0  # how tightly an expression binds


@dataclass(frozen=True)
class Value:
    """An expression for one element.

    Attributes:
        text: C.
        type: "float", "double", "int64_t" or "bool".
        binds: how tightly.
        depth: of the loop that it changes in.
    """

    text: str
    type: str
    binds: int = ATOM
    depth: int = 0

    def within(self, binds: int) -> str:
        """The text as an operand of something that binds so."""
        return self.text if self.binds >= binds else f"({self.text})"


def literal(number: Any, type: str) -> Value:
    """A number of a type."""
    if type == "bool":
        return Value("true" if number else "false", type)
    if type == "int64_t":
        if isinstance(number, float) and not math.isfinite(number):
            raise Undraftable("an infinite integer")
        return Value(str(int(number)), type, ATOM if number >= 0 else PRODUCT)
    number = float(number)
    if math.isnan(number):
        return Value("NAN", type)
    if math.isinf(number):
        return Value("INFINITY" if number > 0 else "-INFINITY", type, ATOM if number > 0 else PRODUCT)
    if type == "float" and abs(number) > 3.4028235e38:
        return Value("FLT_MAX" if number > 0 else "-FLT_MAX", type, PRODUCT)
    text = repr(number) if type == "double" else _shortest(number)
    return Value(text + ("f" if type == "float" else ""), type, ATOM if not text.startswith("-") else PRODUCT)


def _shortest(number: float) -> str:
    text = f"{number:.9g}"
    return text if any(c in text for c in ".en") else text + ".0"


def converted(value: Value, type: str) -> Value:
    """The value in another type, as C converts it."""
    if value.type == type:
        return value
    if re.fullmatch(r"-?\d+", value.text) and type in ("float", "double"):
        return literal(int(value.text), type)
    if type == "bool":
        return Value(f"{value.within(SUM)} != 0", type, LOOSE, value.depth)
    return Value(f"{type}({value.text})", type, ATOM, value.depth)


def common(*types: str) -> str:
    """The type that holds all of them."""
    order = ("bool", "int64_t", "float", "double")
    return max(types, key=order.index)
