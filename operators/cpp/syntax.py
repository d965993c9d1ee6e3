"""A thin layer over the tree: the functions, loops and pragmas of a kernel, and edits that keep its layout.

Edits are byte ranges with new text, so whatever they do not touch (comments, blank lines, alignment)
survives. ``parse`` is cached: an engine that asks thousands of times for the same parent pays once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from operators.cpp.nodes import Node, tree_of

INDENT = "    "
ENTRY = "kernel_function"
_BREAKABLE = ("for_statement", "while_statement", "do_statement", "for_range_loop", "switch_statement")


@dataclass(frozen=True)
class Edit:
    """Put ``text`` in place of the bytes from ``start`` to ``end``."""

    start: int
    end: int
    text: str


Edits = tuple[Edit, ...]


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter of a function. ``pointer``: declared with ``*``; ``ctype``: without ``const`` and ``*``."""

    node: Node
    name: str
    ctype: str
    pointer: bool
    const: bool
    restrict: bool


@dataclass(frozen=True, eq=False)
class Function:
    """A function definition with a body."""

    node: Node
    name: str
    returns: str
    parameters: tuple[Parameter, ...]
    body: Node

    @property
    def entry(self) -> bool:
        """Whether it is the kernel's entry."""
        return self.name == ENTRY

    @property
    def signature(self) -> str:
        """What callers depend on: return and parameter types."""
        types = [f"{'const ' * p.const}{p.ctype}{'*' * p.pointer}" for p in self.parameters]
        return f"{self.returns}({', '.join(types)})"


@dataclass(frozen=True, eq=False)
class Loop:
    """A canonical loop ``for (T var = first; var < bound; var += step)`` whose body never writes ``var``.

    Attributes:
        pragmas: the pragmas right before it, in order.
        parent: the innermost canonical loop around it.
    """

    node: Node
    var: str
    ctype: str
    first: str
    bound: str
    step: str
    body: Node
    pragmas: tuple[Node, ...]
    parent: Loop | None
    function: Function

    @property
    def depth(self) -> int:
        """Canonical loops around it."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def statements(self) -> list[Node]:
        """What its body does, statement by statement, pragmas included."""
        return self.body.named_children if self.body.kind == "compound_statement" else [self.body]

    @property
    def start(self) -> int:
        """First byte of its first pragma's line, or of its own."""
        return _line_start(self.pragmas[0] if self.pragmas else self.node)

    @property
    def end(self) -> int:
        """Byte after it."""
        return self.node.end

    @property
    def indent(self) -> str:
        """White space before ``for``."""
        return _indent_of(self.node)

    @property
    def omp(self) -> str:
        """Its OpenMP directive with clauses, without ``omp``; "" without one."""
        return next((text[4:] for text in map(pragma_text, self.pragmas) if text.startswith("omp ")), "")

    @property
    def parallel(self) -> bool:
        """Whether OpenMP spreads its iterations over threads: its author says they are independent."""
        return re.match(r"(parallel )?for\b", self.omp) is not None

    @property
    def same_range(self) -> tuple[str, str, str]:
        """First, bound and step, blanks removed, for comparison."""
        return squeeze(self.first), squeeze(self.bound), squeeze(self.step)

    @property
    def unit_step(self) -> bool:
        """Whether it counts by one."""
        return self.step == "1"

    @property
    def innermost(self) -> bool:
        """Whether no loop of any kind stands in it."""
        return not any(
            True for _ in self.body.find("for_statement", "while_statement", "do_statement", "for_range_loop")
        )

    @property
    def straight(self) -> bool:
        """Whether nothing leaves it before its bound: no ``break`` of its own, no ``return``, no ``goto``."""
        for node in self.body.find("break_statement", "return_statement", "goto_statement"):
            holders = (n for n in node.above() if n.kind in _BREAKABLE)
            if node.kind != "break_statement" or next(holders) is self.node:
                return False
        return True

    def header(self, first: str | None = None, bound: str | None = None) -> str:
        """``for (...)`` with other limits."""
        step = f"++{self.var}" if self.unit_step else f"{self.var} += {self.step}"
        return f"for ({self.ctype} {self.var} = {first or self.first}; {self.var} < {bound or self.bound}; {step})"

    @property
    def inner_text(self) -> str:
        """The body's text without its braces."""
        text = self.body.text
        return text[1:-1].strip() if self.body.kind == "compound_statement" else text

    def within(self, other: Loop) -> bool:
        """Whether it stands inside the other one."""
        return self is not other and other.body.covers(self.node)


class Unit:
    """One parsed source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.data = source.encode()
        self.root, self.ok = tree_of(source)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions with a body, in order."""
        return tuple(filter(None, map(_function, self.root.find("function_definition"))))

    @cached_property
    def entry(self) -> Function | None:
        """The kernel's entry; None where the source has none."""
        return next((function for function in self.functions if function.entry), None)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All canonical loops, outer before inner."""
        return tuple(loop for function in self.functions for loop in _loops(function))

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

    def loop_around(self, node: Node) -> Loop | None:
        """The innermost canonical loop whose body holds the node."""
        around = [loop for loop in self.loops if loop.body.covers(node)]
        return around[-1] if around else None

    def function_around(self, node: Node) -> Function | None:
        """The function whose body holds the node."""
        return next((function for function in self.functions if function.body.covers(node)), None)

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
                return _line_start(self.root.children[first])
        return len(self.data)

    def _comment_of(self, comment: Node, node: Node) -> bool:
        if comment.kind != "comment" or b"\n" in self.data[comment.end : node.start].strip(b" \t")[1:]:
            return False
        return _line_start(comment) == self.data.rfind(b"\n", 0, comment.start) + 1

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


@lru_cache(maxsize=512)
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
            line = f"{_indent_of(pragma)}#pragma omp {directive}\n" if directive else ""
            return Edit(_line_start(pragma), pragma.end, line)
    start = _line_start(loop.node)
    return Edit(start, start, f"{loop.indent}#pragma omp {directive}\n" if directive else "")


def pragma_text(node: Node) -> str:
    """A pragma on one line, without ``#pragma``: "omp parallel for schedule(static)"."""
    argument = node.child("argument")
    return " ".join(argument.text.replace("\\\n", " ").split()) if argument else ""


def pragmas_before(node: Node) -> tuple[Node, ...]:
    """The pragmas between a statement and the one before it."""
    found: list[Node] = []
    siblings = node.parent.children if node.parent else []
    at = next((i for i, sibling in enumerate(siblings) if sibling is node), 0)
    for sibling in reversed(siblings[:at]):
        if sibling.kind == "preproc_call" and sibling.text.lstrip().startswith("#pragma"):
            found.insert(0, sibling)
        elif sibling.kind != "comment":
            break
    return tuple(found)


def block_siblings(node: Node) -> list[Node]:
    """The statements of the block a statement stands in, comments and pragmas left out."""
    if node.parent is None or node.parent.kind != "compound_statement":
        return [node]
    return [child for child in node.parent.named_children if child.kind != "preproc_call"]


def squeeze(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


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


def _line_start(node: Node) -> int:
    """Start of the node's line where only white space stands before it, else of the node."""
    start = node.data.rfind(b"\n", 0, node.start) + 1
    return node.start if node.data[start : node.start].strip() else start


def _indent_of(node: Node) -> str:
    start = node.data.rfind(b"\n", 0, node.start) + 1
    line = node.data[start : node.start].decode()
    return line[: len(line) - len(line.lstrip())]


def declared_name(declarator: Node) -> str:
    """The name a declarator declares, through ``*``, ``&``, ``[]`` and ``=``."""
    found = next(declarator.find("identifier"), None)
    return found.text if found else ""


def _function(node: Node) -> Function | None:
    body, declarator = node.child("body"), next(node.find("function_declarator"), None)
    if body is None or body.kind != "compound_statement" or declarator is None or body.covers(declarator):
        return None
    parameters = [
        p for p in declarator.part("parameters").named_children if p.kind == "parameter_declaration"
    ]
    returns = node.child("type")
    return Function(
        node,
        declared_name(declarator),
        returns.text if returns else "void",
        tuple(map(_parameter, parameters)),
        body,
    )


def _parameter(node: Node) -> Parameter:
    declarator, ctype = node.child("declarator"), node.child("type")
    words = [child.text for child in node.children if child.kind == "type_qualifier"]
    return Parameter(
        node,
        declared_name(declarator) if declarator else "",
        ctype.text if ctype else "",
        declarator is not None and declarator.kind == "pointer_declarator",
        "const" in words,
        "restrict" in node.text,
    )


def _loops(function: Function) -> Iterator[Loop]:
    loops: list[Loop] = []
    for node in function.body.find("for_statement"):
        around = [loop for loop in loops if loop.body.covers(node)]
        loop = _canonical(node, around[-1] if around else None, function)
        if loop:
            loops.append(loop)
    return iter(loops)


def _canonical(node: Node, parent: Loop | None, function: Function) -> Loop | None:
    start, condition, update = (node.child(role) for role in ("initializer", "condition", "update"))
    body = node.child("body")
    if body is None or start is None or condition is None or update is None or start.kind != "declaration":
        return None
    declarator, ctype = start.child("declarator"), start.child("type")
    value = declarator.child("value") if declarator and declarator.kind == "init_declarator" else None
    if declarator is None or ctype is None or value is None or "," in _punctuation(start):
        return None
    var, bound = declared_name(declarator), condition.child("right")
    step = _step(update, var)
    if (
        condition.kind != "binary_expression"
        or condition.part("operator").text != "<"
        or bound is None
        or not step
    ):
        return None
    if condition.part("left").text != var or bound.mentions(var) or writes_to(body, var):
        return None
    return Loop(
        node, var, ctype.text, value.text, bound.text, step, body, pragmas_before(node), parent, function
    )


def _punctuation(node: Node) -> list[str]:
    return [child.kind for child in node.children if not child.named]


def _step(update: Node, var: str) -> str | None:
    if update.kind == "update_expression":
        return "1" if squeeze(update.text) in (f"++{var}", f"{var}++") else None
    if update.kind == "assignment_expression" and squeeze(update.text).startswith(f"{var}+="):
        return update.part("right").text
    return None


def writes_to(node: Node, name: str) -> bool:
    """Whether a scalar of that name is assigned, counted or has its address taken."""
    for found in node.find("assignment_expression", "update_expression", "pointer_expression"):
        target = found.child("left") or found.child("argument")
        address = found.kind != "pointer_expression" or found.text.startswith("&")
        if address and target is not None and target.text == name:
            return True
    return False
