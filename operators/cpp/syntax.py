"""A thin layer over the tree: the functions, loops and pragmas of a kernel, and edits that keep its layout.

Edits are byte ranges with new text, so whatever they do not touch (comments, blank lines, alignment)
survives. ``parse`` is cached: an engine that asks thousands of times for the same parent pays once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from operators.cpp.nodes import Node, tree_of
from operators.cpp.structure import (
    Function,
    Loop,
    function_of,
    indent_of,
    line_start,
    loops_of,
    pragma_text,
)

INDENT = "    "
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Edit:
    """Put ``text`` in place of the bytes from ``start`` to ``end``."""

    start: int
    end: int
    text: str


Edits = tuple[Edit, ...]


class Unit:
    """One parsed source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.data = source.encode()
        self.root, self.ok = tree_of(source)
        self.known: dict[tuple[object, ...], Any] = {}  # what ``once_per_unit`` functions found

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions with a body, in order."""
        return tuple(filter(None, map(function_of, self.root.find("function_definition"))))

    @cached_property
    def entry(self) -> Function | None:
        """The kernel's entry; None where the source has none."""
        return next((function for function in self.functions if function.entry), None)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All canonical loops, outer before inner."""
        return tuple(loop for function in self.functions for loop in loops_of(function))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every word of the code."""
        return frozenset(
            re.findall(r"[A-Za-z_]\w*", re.sub(r"//[^\n]*|/\*.*?\*/", "", self.source, flags=re.DOTALL))
        )

    def children_of(self, loop: Loop) -> list[Loop]:
        """The canonical loops directly inside."""
        return [inner for inner in self.loops if inner.parent is loop]

    def loop_at(self, node: Node) -> Loop | None:
        """The canonical loop that this node is."""
        return next((loop for loop in self.loops if loop.node is node), None)

    def fresh(self, name: str) -> str:
        """The name, with a number after it where it is taken."""
        if name not in self.names:
            return name
        return next(f"{name}_{i}" for i in range(2, 10_000) if f"{name}_{i}" not in self.names)

    def knob(self, name: str, value: int, allowed: Iterable[int], ctype: str = "int") -> tuple[str, Edit]:
        """A new tuning constant: its name, and the edit that adds it at namespace scope."""
        name = self.fresh(name)
        line = f"constexpr {ctype} {name} = {value};  // tune: {' '.join(map(str, allowed))}\n"
        gap = "" if self._constants else "\n"
        return name, Edit(self._after_constants, self._after_constants, line + gap)

    def definition(self, text: str) -> Edit:
        """Adds a definition before the first function."""
        return Edit(self._before_functions, self._before_functions, text.strip("\n") + "\n\n")

    def include(self, *headers: str) -> Edits:
        """Adds includes that are not there yet."""
        missing = [h for h in headers if not re.search(rf"#\s*include\s*<{re.escape(h)}>", self.source)]
        if not missing:
            return ()
        at = max((node.end for node in self.root.children if node.kind == "preproc_include"), default=0)
        return (Edit(at, at, "".join(f"#include <{header}>\n" for header in missing)),)

    @cached_property
    def _before_functions(self) -> int:
        """Start of the first function's line, before the comments that belong to it."""
        kinds = (
            "function_definition",
            "linkage_specification",
            "namespace_definition",
            "template_declaration",
        )
        for i, node in enumerate(self.root.children):
            if node.kind in kinds:
                first = i
                while first > 0 and self._comment_of(
                    self.root.children[first - 1], self.root.children[first]
                ):
                    first -= 1
                return line_start(self.root.children[first])
        return len(self.data)

    def _comment_of(self, comment: Node, node: Node) -> bool:
        if comment.kind != "comment" or b"\n" in self.data[comment.end : node.start].strip(b" \t")[1:]:
            return False
        return line_start(comment) == self.data.rfind(b"\n", 0, comment.start) + 1

    @cached_property
    def _constants(self) -> list[re.Match[bytes]]:
        lines = re.finditer(rb"^constexpr[^\n]*//[ \t]*tune:[^\n]*\n", self.data, re.MULTILINE)
        return [line for line in lines if line.end() <= self._before_functions]

    @property
    def _after_constants(self) -> int:
        """After the last tuning constant, else before the first function."""
        return self._constants[-1].end() if self._constants else self._before_functions

    def edited(self, edits: Edits) -> str:
        """The source after these edits; those at one place keep their order."""
        pieces: list[bytes] = []
        at = 0
        for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
            if edit.start < at:
                raise ValueError(f"edits overlap at byte {edit.start}")
            pieces += [self.data[at : edit.start], edit.text.encode()]
            at = edit.end
        return b"".join([*pieces, self.data[at:]]).decode()


def once_per_unit(fact: Callable[Concatenate[Unit, P], T]) -> Callable[Concatenate[Unit, P], T]:
    """Remember what a function finds out about a unit, for as long as the unit is."""

    @wraps(fact)
    def remembered(unit: Unit, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (fact, *args)
        if key not in unit.known:
            unit.known[key] = fact(unit, *args, **kwargs)
        found: T = unit.known[key]
        return found

    return remembered


@lru_cache(maxsize=64)
def parse(source: str) -> Unit:
    """The parsed source; asking again for the same text is free."""
    return Unit(source)


def replace_loop(loop: Loop, text: str) -> Edit:
    """Puts other lines in place of a loop and its pragmas, indented as it was."""
    return Edit(loop.start, loop.end, reindent(text, loop.indent))


def set_pragma(loop: Loop, directive: str) -> Edit:
    """Gives a loop this OpenMP directive in place of the one it has; "" takes it away."""
    for pragma in loop.pragmas:
        if pragma_text(pragma).startswith("omp "):
            line = f"{indent_of(pragma)}#pragma omp {directive}\n" if directive else ""
            return Edit(line_start(pragma), pragma.end, line)
    start = line_start(loop.node)
    return Edit(start, start, f"{loop.indent}#pragma omp {directive}\n" if directive else "")


def block_siblings(node: Node) -> list[Node]:
    """The statements of the block a statement stands in, comments and pragmas left out."""
    if node.parent is None or node.parent.kind != "compound_statement":
        return [node]
    return [child for child in node.parent.named_children if child.kind != "preproc_call"]


def braced(text: str) -> str:
    """``{ text }`` over several lines."""
    return "{\n" + text.strip() + "\n}"


def reindent(text: str, base: str = "") -> str:
    """Lines indented by how deep their braces are; a line inside open parentheses gets two levels more."""
    lines: list[str] = []
    braces = parens = 0
    for line in text.strip("\n").split("\n"):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'|//.*', "", line).strip()
        closing = len(code) - len(code.lstrip("})"))
        level = max(braces - code[:closing].count("}"), 0) + 2 * (parens > 0)
        lines.append(f"{base}{INDENT * level}{line.strip()}" if line.strip() else "")
        braces += code.count("{") - code.count("}")
        parens += code.count("(") - code.count(")")
    return "\n".join(lines)
