"""What all stages share: loops as text, and the writes at their innermost place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from operators.draft.expressions import Value
from operators.draft.operations import Operation
from operators.draft.sizes import Digits, Extent, joined, product, regrouped
from operators.draft.values import Array, Local, Mismatch, Values, stored


@dataclass(frozen=True)
class Write:
    """A node whose elements go to an array."""

    node: str
    array: Array


@dataclass
class Stage:
    """One loop nest of the kernel: what it computes beside what it writes.

    Attributes:
        computes: nodes that are known only inside, unless they are kept.
        writes: what its innermost place stores.
    """

    computes: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)


class NodeStage(Stage):
    """A stage that computes one node and gives it to all who want it, element by element."""

    def __init__(self, node: Operation) -> None:
        super().__init__([node.name])
        self.node = node

    def and_writes(self, one: Write) -> Self:
        """The same with one more write."""
        made = type(self)(self.node)
        made.writes = [*self.writes, one]
        return made

    def finish(self, values: Values, kept: dict[str, Array], digits: Digits, found: Value) -> None:
        """The element at a row-major place is known: store it, and what is computed from it."""
        flat = joined(digits)
        values.locals[self.node.name] = Local(flat, found)
        if self.node.name in kept:
            values.write(stored(found, kept[self.node.name], flat))
        write(values, self.writes, flat, self.node.count)


def loop(name: str, extent: Extent, body: list[str], *pragmas: str) -> list[str]:
    """A canonical loop."""
    return [*pragmas, f"for (int64_t {name} = 0; {name} < {extent.text}; ++{name}) {{", *body, "}"]


def nest(
    values: Values,
    names: Sequence[tuple[str, Extent]],
    body: Callable[[], None],
    outer: str = "",
    inner: str = "",
    *,
    collapse: bool = False,
) -> None:
    """Loops within each other, written to the level that stands now.

    Args:
        names: variable and extent, outermost first.
        body: writes the innermost level.
        outer: pragma of the outermost loop.
        inner: pragma of the innermost one, where it is another.
        collapse: the outer two are one for OpenMP, so nothing may stand between them.
    """
    for _ in names:
        values.enter()
    body()
    bodies = [values.leave() for _ in names][::-1]
    if collapse:
        bodies[:2] = [[], bodies[0] + bodies[1]]
        outer += " collapse(2)"
    lines: list[str] = []
    for n in reversed(range(len(names))):
        found = bodies[n] + lines
        name, extent = names[n]
        pragma = outer if n == 0 and outer else inner if n == len(names) - 1 else ""
        lines = loop(name, extent, found, *([f"#pragma omp {pragma}"] if pragma else []))
    values.write(*lines)


def write(values: Values, writes: Sequence[Write], digits: Digits, count: Extent) -> None:
    """Store the elements that stand at a row-major place.

    Raises:
        Mismatch: one has another number of elements.
    """
    for one in writes:
        node = values.program.nodes[one.node]
        if int(product(node.shape)) != int(count):
            raise Mismatch(one.node)
        index = regrouped(digits, node.shape)
        value = values.at(one.node, index)
        values.write(stored(value, one.array, joined(digits)))


def divisions(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Depth of each line, and how many divisions and remainders its places take."""
    found, depth = [], 0
    for line in lines:
        if line.startswith("}"):
            depth -= 1
        places = re.findall(r"\[([^\]]*)\]", line)
        found.append((depth, sum(text.count(" / ") + text.count(" % ") for text in places)))
        if line.endswith("{"):
            depth += 1
    return found
