"""The value of any node at any index: the cheap ones are computed where they are read, the rest is in memory.

Statements land in the outermost loop in which everything they read is known, once for each node and index.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from operators.draft import gathering, pointwise
from operators.draft.expressions import ATOM, Value, converted, literal
from operators.draft.operations import Operation, Program, Ref, Undraftable, Varying
from operators.draft.sizes import Digits, Extent, Index, joined, place
from operators.draft.views import VIEWS, broadcast

LONG = 70  # characters of an expression that gets a name


class Mismatch(Exception):
    """A value is not known where it is asked for; what asked must stand elsewhere."""


@dataclass(frozen=True)
class Array:
    """A tensor in memory."""

    name: str
    dtype: str
    shape: tuple[Extent, ...]


@dataclass
class Level:
    """One loop body, or the function's."""

    lines: list[str] = field(default_factory=list)
    known: dict[tuple[str, Index], Value] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Local:
    """A value that is known for one index only: that of the loop it was computed in."""

    digits: Digits
    value: Value


class Values:
    """Writes expressions for one stage.

    Args:
        program: all operations.
        arrays: what is in memory by now.
        names: C names of nodes.
        pending: computed nodes that are not in memory (yet); reading one is a mismatch.
    """

    def __init__(
        self, program: Program, arrays: dict[str, Array], names: dict[str, str], pending: set[str]
    ) -> None:
        self.program = program
        self.arrays = arrays
        self.names = names
        self.pending = pending
        self.locals: dict[str, Local] = {}
        self.levels: list[Level] = [Level()]
        self.read_from: set[str] = set()  # names of arrays, and of nodes known locally
        self.tuned: dict[str, str] = {}  # constants that tune: name -> value and allowed ones
        self._guards = 0

    def again(self) -> Values:
        """The same knowledge, nothing written yet."""
        made = Values(self.program, self.arrays, self.names, self.pending)
        made.read_from, made.tuned = self.read_from, self.tuned
        return made

    # -- loops -----------------------------------------------------------------------------------------

    def enter(self) -> int:
        """A loop begins; its depth."""
        self.levels.append(Level())
        return len(self.levels) - 1

    def leave(self) -> list[str]:
        """The body of the loop that ends."""
        return self.levels.pop().lines

    def write(self, *lines: str) -> None:
        """Lines of the innermost body."""
        self.levels[-1].lines += lines

    def fresh(self, name: str, level: int = -1) -> str:
        """A C name for a level that no open loop has."""
        used = set[str]().union(*(one.names for one in self.levels))
        found = next(
            word for n in range(1, len(used) + 2) if (word := name if n == 1 else f"{name}_{n}") not in used
        )
        self.levels[level].names.add(found)
        return found

    # -- values ----------------------------------------------------------------------------------------

    def at(self, name: str, index: Index) -> Value:
        """The value of a node at an index.

        Raises:
            Mismatch, Undraftable: it can't be had here; never.
        """
        index = tuple(joined(digits) for digits in index)
        for level in reversed(self.levels):
            if (name, index) in level.known:
                return level.known[name, index]
        node = self.program.nodes[name]
        value = self._found(node, index)
        if self._deserves_name(node, value):
            value = self._named(node, index, value)
        return value

    def _found(self, node: Operation, index: Index) -> Value:
        flat = joined(digit for digits in index for digit in digits)
        if node.name in self.locals:
            local = self.locals[node.name]
            if local.digits != flat:
                raise Mismatch(node.name)
            self.read_from.add(node.name)
            return local.value
        if node.name in self.arrays:
            return self._load(self.arrays[node.name], flat)
        if node.name in self.pending:
            raise Mismatch(node.name)
        if node.op in VIEWS:
            source = node.refs()[0]
            shape = self.program.nodes[source].shape
            return converted(self.at(source, VIEWS[node.op](node, shape, index)), node.c_type)
        rule = gathering.RULES.get(node.op)
        if rule is not None:
            return rule(self, node, index)
        found = pointwise.expression(node, lambda name: self._argument(node, name, index))
        if found is None:
            raise Undraftable(node.op)
        return found

    def _argument(self, node: Operation, name: str, index: Index) -> Value | None:
        given = node[name]
        if isinstance(given, Ref):
            return self.at(given, broadcast(index, self.program.nodes[given].shape))
        if given is None or isinstance(given, str | list):
            return None
        if isinstance(given, bool):
            return literal(given, "bool")
        if isinstance(given, Varying) or (isinstance(given, Extent) and given.factors):
            return Value(f"{node.c_type}({given.text})", node.c_type, ATOM, 0)
        if isinstance(given, int):
            return literal(given, "int64_t" if node.c_type in ("int64_t", "bool") else node.c_type)
        return literal(given, "double" if node.c_type == "double" else "float")

    def _load(self, array: Array, digits: Digits) -> Value:
        self.read_from.add(array.name)
        deep = max((digit.depth for digit in digits), default=0)
        text = f"{array.name}[{place(digits)}]"
        if array.dtype == "bfloat16":
            return Value(f"from_bfloat16({text})", "float", ATOM, deep)
        if array.dtype == "float16":
            return Value(f"from_float16({text})", "float", ATOM, deep)
        if array.dtype == "bool":
            return Value(f"{text} != 0", "bool", 0, deep)
        if array.dtype in ("float32", "float64"):
            return Value(text, "float" if array.dtype == "float32" else "double", ATOM, deep)
        return Value(text if array.dtype == "int64" else f"int64_t({text})", "int64_t", ATOM, deep)

    def guarded(self, name: str, index: Index) -> Value:
        """The value as one expression, for a place that is only reached under a condition."""
        self._guards += 1
        try:
            return self.at(name, index)
        finally:
            self._guards -= 1

    def _deserves_name(self, node: Operation, value: Value) -> bool:
        if self._guards or node.name in self.locals or re.fullmatch(r"-?[\w.]+", value.text):
            return False
        if node.op in VIEWS or (node.name in self.arrays and "from_" not in value.text):
            return False
        if len(value.text) > LONG or self.program.users[node.name] > 1:
            return True
        return value.depth < len(self.levels) - 1 and bool(re.search(r"\w\(| / ", value.text))

    def _named(self, node: Operation, index: Index, value: Value) -> Value:
        base = self.names[node.name] + ("_at" if node.name in self.arrays else "")
        name = self.fresh(base, value.depth)
        level = self.levels[value.depth]
        level.lines.append(f"const {value.type} {name} = {value.text};")
        named = Value(name, value.type, ATOM, value.depth)
        level.known[node.name, index] = named
        return named


def stored(value: Value, array: Array, digits: Digits) -> str:
    """The statement that writes a value to an array."""
    target = f"{array.name}[{place(digits)}]"
    if array.dtype == "bfloat16":
        return f"{target} = to_bfloat16({value.text});"
    if array.dtype == "float16":
        return f"{target} = to_float16({value.text});"
    return f"{target} = {value.text};"
