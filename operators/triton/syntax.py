"""A thin layer over libcst: where each node of a kernel file stands, and edits that keep its layout.

Edits are byte ranges with new text, so whatever they do not touch (comments, blank lines, alignment)
survives. ``parse`` is cached: an engine that asks thousands of times for the same parent pays once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

INDENT = "    "
N = TypeVar("N", bound=cst.CSTNode)


@dataclass(frozen=True)
class Edit:
    """Put ``text`` in place of the bytes from ``start`` to ``end``."""

    start: int
    end: int
    text: str


Edits = tuple[Edit, ...]


class Tree:
    """One parsed source: its nodes in order, each with its bytes, its parent and all that is below it.

    Raises:
        ParserSyntaxError: it is no Python.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.data = source.encode()
        self.module = cst.parse_module(self.data)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._nodes: list[cst.CSTNode] = []
        self._place: dict[cst.CSTNode, tuple[int, int]] = {}
        self._parent: dict[cst.CSTNode, cst.CSTNode] = {}
        self._ends: dict[cst.CSTNode, tuple[int, int]] = {}
        self._visit(self.module)
        self.names = set(re.findall(r"[A-Za-z_]\w*", source))

    def _visit(self, node: cst.CSTNode) -> None:
        first = len(self._nodes)
        self._nodes.append(node)
        for child in node.children:
            self._parent[child] = node
            self._visit(child)
        self._place[node] = (first, len(self._nodes))

    def find(self, node: cst.CSTNode, kind: type[N]) -> list[N]:
        """All nodes of a kind in a node, itself included, in the order of the source."""
        return [found for found in self.below(node) if isinstance(found, kind)]

    def below(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A node and all that is in it, in the order of the source."""
        first, end = self._place[node]
        return self._nodes[first:end]

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What holds a node, from the inside out."""
        while (parent := self._parent.get(node)) is not None:
            yield parent
            node = parent

    def covers(self, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
        """Whether one node is in the other, or is the other."""
        (first, end), (at, _) = self._place[outer], self._place[inner]
        return first <= at < end

    def start(self, node: cst.CSTNode) -> int:
        """Its first byte; parentheses around an expression belong to it."""
        return self._bytes(node)[0]

    def end(self, node: cst.CSTNode) -> int:
        """The byte after its last."""
        return self._bytes(node)[1]

    def _bytes(self, node: cst.CSTNode) -> tuple[int, int]:
        if node not in self._ends:
            span = self._spans[node]
            start, end = span.start, span.start + span.length
            for _ in getattr(node, "lpar", ()):
                start = self.data.rfind(b"(", 0, start)
                end = self.data.find(b")", end) + 1
            self._ends[node] = (start, end)
        return self._ends[node]

    def text(self, node: cst.CSTNode) -> str:
        """Its source text, without the white space and comments around it."""
        return self.data[self.start(node) : self.end(node)].decode()

    def swap(self, node: cst.CSTNode, text: str) -> Edit:
        """Put text in place of a node."""
        return Edit(self.start(node), self.end(node), text)

    def before(self, statement: cst.CSTNode, text: str) -> Edit:
        """Put lines, indented like the statement, in front of it and of the comments that belong to it."""
        at = self.lines(statement)[0]
        return Edit(at, at, indented(text, self.indent(statement)))

    def after(self, statement: cst.CSTNode, text: str) -> Edit:
        """Put lines, indented like the statement, behind it."""
        at = self.lines(statement)[1]
        return Edit(at, at, indented(text, self.indent(statement)))

    def drop(self, statement: cst.CSTNode) -> Edit:
        """Remove the lines of a statement."""
        return Edit(*self.lines(statement), "")

    def lines(self, statement: cst.CSTNode) -> tuple[int, int]:
        """The whole lines of a statement, from the comments right above it to its last newline."""
        start = self.data.rfind(b"\n", 0, self.start(statement)) + 1
        while start:
            above = self.data.rfind(b"\n", 0, start - 1) + 1
            if not self.data[above:start].lstrip().startswith(b"#"):
                break
            start = above
        end = self.data.find(b"\n", self.end(statement))
        return start, len(self.data) if end < 0 else end + 1

    def block(self, statements: Sequence[cst.CSTNode], edits: Iterable[Edit] = ()) -> str:
        """The lines of neighbouring statements without their indentation, after some edits in them."""
        start, end = self.lines(statements[0])[0], self.lines(statements[-1])[1]
        text = edited(self.data, edits, start, end)
        depth = len(self.indent(statements[0]))
        text = text if text.endswith("\n") else text + "\n"
        return "".join(
            line[depth:] if not line[:depth].strip() else line for line in text.splitlines(keepends=True)
        )

    def indent(self, statement: cst.CSTNode) -> str:
        """The white space in front of a statement."""
        start = self.start(statement)
        return self.data[self.data.rfind(b"\n", 0, start) + 1 : start].decode()

    def edited(self, edits: Iterable[Edit]) -> str:
        """The source after some edits, which must not overlap."""
        return edited(self.data, edits, 0, len(self.data))

    def fresh(self, name: str) -> str:
        """The name, or with a number behind it if it is taken."""
        if name not in self.names:
            return name
        return next(f"{name}_{i}" for i in range(2, 10_000) if f"{name}_{i}" not in self.names)


def edited(data: bytes, edits: Iterable[Edit], start: int, end: int) -> str:
    """The bytes from start to end after some edits in them; equal places keep the order of the edits.

    Raises:
        ValueError: two edits overlap.
    """
    pieces, at = list[bytes](), start
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < at or edit.end > end:
            raise ValueError("two edits overlap")
        pieces += [data[at : edit.start], edit.text.encode()]
        at = edit.end
    return b"".join([*pieces, data[at:end]]).decode()


def indented(text: str, by: str = INDENT) -> str:
    """Lines with white space in front of each that is not blank."""
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Python text with other texts for some names; attributes, keywords and strings stay as they are."""
    if not names:
        return text
    tree = tree_of(text)
    edits = []
    for name in tree.find(tree.module, cst.Name):
        holder = next(tree.above(name))
        is_label = (isinstance(holder, cst.Attribute) and holder.attr is name) or (
            isinstance(holder, cst.Arg) and holder.keyword is name
        )
        if name.value in names and not is_label:
            edits.append(tree.swap(name, names[name.value]))
    return tree.edited(edits)


@lru_cache(maxsize=512)
def tree_of(source: str) -> Tree:
    """The parsed source.

    Raises:
        ParserSyntaxError: it is no Python.
    """
    return Tree(source)


def well_formed(source: str) -> bool:
    """Whether it is Python; its own compiler is asked, which is faster than a parser that keeps layout."""
    try:
        compile(source, "kernel.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def squeeze(text: str) -> str:
    """The text without white space, for comparing expressions."""
    return re.sub(r"\s+", "", text)
