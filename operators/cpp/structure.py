"""The functions and loops of a parsed source, with what a rewrite wants to know of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from operators.cpp.nodes import Node

ENTRY = "kernel_function"
_BREAKABLE = ("for_statement", "while_statement", "do_statement", "for_range_loop", "switch_statement")


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter. ``pointer``: declared with ``*``; ``ctype``: its type without ``const`` and ``*``."""

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
        return line_start(self.pragmas[0] if self.pragmas else self.node)

    @property
    def end(self) -> int:
        """Byte after it."""
        return self.node.end

    @property
    def indent(self) -> str:
        """White space before ``for``."""
        return indent_of(self.node)

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
        return not any(True for _ in self.body.find(*_BREAKABLE[:4]))

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
        start, end = first or self.first, bound or self.bound
        return f"for ({self.ctype} {self.var} = {start}; {self.var} < {end}; {step})"

    @property
    def inner_text(self) -> str:
        """The body's text without its braces."""
        text = self.body.text
        return text[1:-1].strip() if self.body.kind == "compound_statement" else text

    def within(self, other: Loop) -> bool:
        """Whether it stands inside the other one."""
        return self is not other and other.body.covers(self.node)


def function_of(node: Node) -> Function | None:
    """The function that a definition defines; None where it has no body."""
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


def loops_of(function: Function) -> Iterator[Loop]:
    """Its canonical loops, outer before inner."""
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


def squeeze(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def line_start(node: Node) -> int:
    """Start of the node's line where only white space stands before it, else of the node."""
    start = node.data.rfind(b"\n", 0, node.start) + 1
    return node.start if node.data[start : node.start].strip() else start


def indent_of(node: Node) -> str:
    """White space at the start of the node's line."""
    start = node.data.rfind(b"\n", 0, node.start) + 1
    line = node.data[start : node.start].decode()
    return line[: len(line) - len(line.lstrip())]


def declared_name(declarator: Node) -> str:
    """The name a declarator declares, through ``*``, ``&``, ``[]`` and ``=``."""
    found = next(declarator.find("identifier"), None)
    return found.text if found else ""
