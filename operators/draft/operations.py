"""The graph as a draft works on it: arguments are values, sizes know their C text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from operators.draft.sizes import Extent, product
from populations.dtypes import FLOATS


class Undraftable(Exception):
    """No kernel can be drafted; its text says why."""


class Ref(str):
    """The name of the node whose value an argument is."""


class Varying(float):
    """A number that is computed from sizes; knows its C text."""

    text: str

    def __new__(cls, value: float, text: str) -> Varying:
        """The number in the given case."""
        made = super().__new__(cls, value)
        made.text = text
        return made


@dataclass(frozen=True)
class Operation:
    """A node, ready to be written as C.

    Attributes:
        name: unique.
        op: "aten.mul", without the overload.
        given: arguments by name; nodes are ``Ref``.
        shape: sizes.
        dtype: torch's name.
    """

    name: str
    op: str
    given: dict[str, Any]
    shape: tuple[Extent, ...]
    dtype: str

    @property
    def c_type(self) -> str:
        """What its elements are computed in."""
        return computed_in(self.dtype)

    @property
    def count(self) -> Extent:
        """How many elements it has."""
        return product(self.shape)

    def __getitem__(self, name: str) -> Any:
        """An argument; None where it was not given."""
        return self.given.get(name)

    def refs(self) -> list[Ref]:
        """The nodes it reads."""
        return [ref for value in self.given.values() for ref in _refs(value)]


@dataclass
class Program:
    """All operations in order.

    Attributes:
        nodes: by name, each after those it reads.
        inputs: names of the entry's read-only arguments.
        outputs: what each output holds.
    """

    nodes: dict[str, Operation]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    users: Counter[str] = field(default_factory=Counter)


def computed_in(dtype: str) -> str:
    """The C type of a value in flight."""
    if dtype == "float64":
        return "double"
    if dtype in FLOATS:
        return "float"
    return "bool" if dtype == "bool" else "int64_t"


def _refs(value: Any) -> list[Ref]:
    if isinstance(value, Ref):
        return [value]
    return [ref for item in value for ref in _refs(item)] if isinstance(value, list) else []
