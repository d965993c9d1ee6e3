"""What a piece of code reads and writes.

Buffers of the entry never overlap (the judge allocates each on its own), so two accesses may meet only if
their pointers come from the same buffer. Whatever this file cannot see through counts as touching everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from operators.cpp.nodes import Node
from operators.cpp.offsets import joined, offsets_in, pointee, roots_in, spelled_out
from operators.cpp.scalars import called
from operators.cpp.structure import Function, declared_name, squeeze
from operators.cpp.syntax import Unit, once_per_unit

PURE = {
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "pow", "tanh", "erf", "sin", "cos", "fma",
    "fabs", "abs", "max", "min", "fmax", "fmin", "clamp", "copysign", "isnan", "isinf", "isfinite",
    "rint", "irint", "lrint", "nearbyint", "round", "lround", "floor", "ceil", "trunc", "expect", "prefetch",
    "static_cast", "bit_cast", "numeric_limits", "infinity", "lowest", "quiet_NaN",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Access:
    """One element read or written. ``root``: the buffer the pointer comes from; None if that is unknown."""

    node: Node
    base: str
    root: str | None
    index: Node | None
    offset: str  # from the root's start, blanks removed, e.g. "r*n+j"


@dataclass(frozen=True, eq=False)
class Effects:
    """What some statements do to the world around them.

    Attributes:
        reads, writes: scalars from outside that are read and written.
        declared: names declared inside.
        loads, stores: elements of arrays.
        opaque: calls something unknown, or does something this analysis does not follow.
        jumps: leaves by ``break``, ``continue``, ``return`` or ``goto``.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    declared: frozenset[str]
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    opaque: bool
    jumps: bool

    @property
    def simple(self) -> bool:
        """Whether the analysis saw everything and control runs straight through."""
        return not self.opaque and not self.jumps and all(a.root for a in self.loads + self.stores)


@once_per_unit
def effects(unit: Unit, function: Function, *statements: Node) -> Effects:
    """What these statements of a function do."""
    return _Survey(unit, function).of(statements)


class _Survey:
    def __init__(self, unit: Unit, function: Function) -> None:
        self.unit, self.roots, self.offsets = unit, roots_in(unit, function), offsets_in(unit, function)
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.declared: set[str] = set()
        self.loads: list[Access] = []
        self.stores: list[Access] = []
        self.opaque = self.jumps = False

    def of(self, statements: tuple[Node, ...]) -> Effects:
        for statement in statements:
            self.visit(statement)
        return Effects(
            frozenset(self.reads - self.declared),
            frozenset(self.writes - self.declared),
            frozenset(self.declared),
            tuple(self.loads),
            tuple(self.stores),
            self.opaque,
            self.jumps,
        )

    def visit(self, node: Node) -> None:
        """Note what one node does, and all below it."""
        special = getattr(self, f"on_{node.kind}", None)
        if special is not None:
            special(node)
        else:
            for child in node.children:
                if child.named:
                    self.visit(child)

    def on_identifier(self, node: Node) -> None:
        self.reads.add(node.text)

    def on_comment(self, _: Node) -> None: ...

    def on_preproc_call(self, _: Node) -> None: ...

    def on_declaration(self, node: Node) -> None:
        for child in node.children:
            if child.field == "declarator":
                if "reference_declarator" in (child.kind, child.children[0].kind if child.children else ""):
                    self.opaque = True
                self.declared.add(declared_name(child))
                value = child.child("value")
                if value is not None and self.roots.get(declared_name(child), (None, "?"))[1] != "?":
                    self.reads.update(n.text for n in value.find("identifier") if n.text not in self.roots)
                elif value is not None:
                    self.visit(value)
            elif child.text == "static":
                self.opaque = True

    def on_assignment_expression(self, node: Node) -> None:
        self.write(node.part("left"), also_read=node.part("operator").text != "=")
        self.visit(node.part("right"))

    def on_update_expression(self, node: Node) -> None:
        self.write(node.part("argument"), also_read=True)

    def write(self, target: Node, also_read: bool) -> None:
        """Note that a scalar or an element is written."""
        if target.kind == "parenthesized_expression":
            self.write(target.named_children[0], also_read)
        elif target.kind == "identifier":
            self.writes.add(target.text)
            if also_read:
                self.reads.add(target.text)
        elif target.kind == "subscript_expression" or target.text.startswith("*"):
            self.access(target, self.stores)
            if also_read:
                self.access(target, self.loads)
        else:
            self.opaque = True

    def on_subscript_expression(self, node: Node) -> None:
        self.access(node, self.loads)

    def on_pointer_expression(self, node: Node) -> None:
        if node.text.startswith("*"):
            self.access(node, self.loads)
        else:
            self.opaque = True

    def access(self, node: Node, into: list[Access]) -> None:
        """Note one element; the index is read as well."""
        base = node.part("argument")
        indices = node.child("indices")
        index = indices.named_children[0] if indices and indices.named_children else None
        if index is not None:
            self.visit(index)
        if base.kind != "identifier":
            self.opaque = True
            self.visit(base)
            return
        root, before = self.roots.get(base.text, (None, "?"))
        offset = joined(before, squeeze(index.text) if index else "0")
        into.append(Access(node, base.text, root, index, spelled_out(offset, self.offsets)))

    def on_call_expression(self, node: Node) -> None:
        if called(node) in ("memcpy", "__builtin_memcpy"):
            self.copied(node.part("arguments").named_children)
            return
        if node.part("function").kind == "field_expression" or not is_pure(self.unit, called(node)):
            self.opaque = True
        if called(node) == "__builtin_prefetch":
            return
        for argument in node.part("arguments").named_children:
            self.visit(argument)

    def copied(self, arguments: list[Node]) -> None:
        """Note ``memcpy`` of one scalar: to and from ``&name``, or ``pointer + offset``."""
        for side, argument in zip(("to", "from"), arguments[:2], strict=False):
            inner = argument.child("argument") if argument.text.startswith("&") else None
            if inner is not None and inner.kind == "identifier":
                (self.writes if side == "to" else self.reads).add(inner.text)
                continue
            root, offset = pointee(argument, self.roots)
            base = next((n.text for n in argument.find("identifier") if n.text in self.roots), "")
            self.opaque |= inner is not None or not base
            access = Access(argument, base, root, None, spelled_out(offset or "0", self.offsets))
            (self.stores if side == "to" else self.loads).append(access)
            self.reads.update(n.text for n in argument.find("identifier") if n.text != base)

    def on_lambda_expression(self, _: Node) -> None:
        self.opaque = True

    def jump(self, node: Node) -> None:
        self.jumps = True
        for child in node.named_children:
            self.visit(child)

    on_break_statement = on_continue_statement = on_return_statement = on_goto_statement = jump
    on_while_statement = on_do_statement = on_for_range_loop = on_try_statement = on_lambda_expression


@once_per_unit
def is_pure(unit: Unit, name: str) -> bool:
    """Whether a function computes a value from values and does nothing else."""
    plain = name.removeprefix("__builtin_")
    if name in PURE or plain in PURE or plain.removesuffix("f") in PURE:
        return True
    own = next((function for function in unit.functions if function.name == name), None)
    if own is None or any(parameter.pointer for parameter in own.parameters):
        return False
    calls = [called(call) for call in own.body.find("call_expression")]
    harmless = {"memcpy", "__builtin_memcpy"}
    declarators = [c for d in own.body.find("declaration") for c in d.children if c.field == "declarator"]
    names = {p.name for p in own.parameters} | {declared_name(declarator) for declarator in declarators}
    written = [n.child("left") for n in own.body.find("assignment_expression")]
    local = all(
        target is not None and target.kind == "identifier" and target.text in names for target in written
    )
    return local and all(other in harmless or (other != name and is_pure(unit, other)) for other in calls)
