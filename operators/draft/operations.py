"""The graph as the draft works on it: arguments parsed, sizes with their C text, compound operations split."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from operators.draft.sizes import Extent, product
from populations.graph import Graph

HALVES = ("bfloat16", "float16")
FLOATS = ("float32", "float64", *HALVES)
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


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

    def axis(self, value: int, rank: int) -> int:
        """A dimension counted from the front."""
        return value % rank if rank else 0


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


def parsed(graph: Graph) -> Program:
    """The program of a graph.

    Raises:
        Undraftable: it holds something that is no tensor where one is needed.
    """
    nodes: dict[str, Operation] = {}
    for node in graph.nodes:
        shape = tuple(Extent.read(*pair) for pair in zip(node.shape, node.sizes, strict=True))
        given = {name: _value(text) for name, text in node.arguments.items()}
        op = node.op if "." not in node.op else node.op.rsplit(".", 1)[0]
        nodes[node.name] = Operation(node.name, op, given, shape, node.dtype)
    for operation in list(nodes.values()):
        if any(str(dtype).startswith("complex") for dtype in (operation.dtype,)):
            raise Undraftable("complex numbers")
    inputs = tuple(node.name for node in graph.nodes if node.op == "input")
    program = Program(nodes, inputs, graph.outputs)
    from operators.draft.splitting import split

    split(program)
    _prune(program)
    return program


def _prune(program: Program) -> None:
    """Drop what no output needs, and count who reads what."""
    needed = set(program.outputs) | set(program.inputs)
    for operation in reversed(program.nodes.values()):
        if operation.name in needed:
            needed.update(operation.refs())
    program.nodes = {name: operation for name, operation in program.nodes.items() if name in needed}
    for operation in program.nodes.values():
        program.users.update(operation.refs())


def _value(text: str) -> Any:
    varying = re.fullmatch(r"<([^:]+): (.*)>", text)
    if varying and "double" not in varying[2] and "1.0" not in varying[2]:
        return Extent.read(int(float(varying[1])), varying[2])
    if varying:
        return Varying(float(varying[1]), varying[2])
    text = re.sub(r"%(\w+)", r"'%\1'", text)
    text = re.sub(r"(?<![\w'])inf\b", "1e999", text)
    text = re.sub(r"(?<![\w'])nan\b", "'nan'", text)
    return _named(ast.literal_eval(text))


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, str):
        return Ref(value[1:]) if value.startswith("%") else math.nan if value == "nan" else value
    return value


def _refs(value: Any) -> list[Ref]:
    if isinstance(value, Ref):
        return [value]
    return [ref for item in value for ref in _refs(item)] if isinstance(value, list) else []
