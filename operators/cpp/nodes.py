"""A C++ syntax tree as plain values: what tree-sitter parsed, walked once and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import tree_sitter
import tree_sitter_cpp


class Node:
    """One node of the tree. Offsets are bytes into ``data``; equality is identity.

    Attributes:
        kind: tree-sitter's name of it, e.g. "for_statement".
        field: its role in the parent, e.g. "body"; None where it has none.
        named: False for punctuation and keywords.
    """

    __slots__ = ("children", "data", "end", "field", "kind", "named", "parent", "start")

    def __init__(self, data: bytes, node: tree_sitter.Node, field: str | None, parent: Node | None) -> None:
        self.data = data
        self.kind = node.type
        self.start = node.start_byte
        self.end = node.end_byte
        self.named = node.is_named
        self.field = field
        self.parent = parent
        self.children: list[Node] = []

    @property
    def text(self) -> str:
        """The source it covers."""
        return self.data[self.start : self.end].decode()

    @property
    def named_children(self) -> list[Node]:
        """Children without punctuation and comments."""
        return [child for child in self.children if child.named and child.kind != "comment"]

    def child(self, field: str) -> Node | None:
        """The child in that role."""
        for child in self.children:
            if child.field == field:
                return child
        return None

    def part(self, field: str) -> Node:
        """The child in a role that the grammar always fills."""
        child = self.child(field)
        if child is None:
            raise LookupError(f"{self.kind} has no {field}")
        return child

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in source order."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += node.children[::-1]

    def find(self, *kinds: str) -> Iterator[Node]:
        """All nodes of these kinds, in source order."""
        return (node for node in self.walk() if node.kind in kinds)

    def above(self) -> Iterator[Node]:
        """Parent, grandparent, and so on."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def covers(self, other: Node) -> bool:
        """Whether the other node lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def mentions(self, name: str) -> bool:
        """Whether an identifier of that name stands in it."""
        return any(node.text == name for node in self.find("identifier"))

    def with_names(self, names: Mapping[str, str]) -> str:
        """Its text with identifiers replaced, e.g. ``{"j": "(block + k)"}``."""
        return self.replacing(
            {node: names[node.text] for node in self.find("identifier") if node.text in names}
        )

    def replacing(self, parts: Mapping[Node, str]) -> str:
        """Its text with whole (not overlapping) nodes replaced."""
        pieces, at = [], self.start
        for node in sorted(parts, key=lambda node: node.start):
            pieces += [self.data[at : node.start].decode(), parts[node]]
            at = node.end
        return "".join([*pieces, self.data[at : self.end].decode()])

    def __repr__(self) -> str:
        return f"<{self.kind} {self.text[:40]!r}>"


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def well_formed(source: str) -> bool:
    """Whether the text parses as C++ without an error."""
    return not _parser().parse(source.encode()).root_node.has_error


def tree_of(source: str) -> tuple[Node, bool]:
    """The tree of a text, and whether it parsed without an error."""
    data = source.encode()
    tree = _parser().parse(data)
    cursor = tree.walk()
    root = Node(data, tree.root_node, None, None)
    here = root
    while True:
        if cursor.goto_first_child():
            parent = here
        else:
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent() or here.parent is None:
                    return root, not tree.root_node.has_error
                here = here.parent
            assert here.parent is not None
            parent = here.parent
        node = cursor.node
        assert node is not None
        here = Node(data, node, cursor.field_name, parent)
        parent.children.append(here)
