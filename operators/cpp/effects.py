"""What a piece of code reads and writes, and whether iterations of a loop depend on each other.

Buffers of the entry never overlap (the judge allocates each on its own), so two accesses may meet only if
their pointers come from the same buffer. Whatever this file cannot see through counts as touching everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from operators.cpp.nodes import Node
from operators.cpp.scalars import called, types_in
from operators.cpp.syntax import Function, Loop, Unit, declared_name, squeeze

PURE = {
    "exp", "log", "sqrt", "tanh", "pow", "fabs", "abs", "max", "min", "erf", "fmax", "fmin", "rint", "lrint",
    "nearbyint", "round", "lround", "floor", "ceil", "sin", "cos", "exp2", "log2", "expm1", "log1p", "fma", "copysign",
    "trunc", "isnan", "isinf", "isfinite", "static_cast", "clamp", "lrintf", "lroundf", "numeric_limits", "infinity",
    "lowest", "quiet_NaN", "__builtin_prefetch", "__builtin_expect", "bit_cast",
}  # fmt: skip
_ADDITIVE = {"+=": "+", "-=": "+", "*=": "*"}


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


@lru_cache(maxsize=512)
def roots_in(unit: Unit, function: Function) -> dict[str, tuple[str | None, str]]:
    """For each pointer or array of a function: the buffer it points into, and its offset there.

    In a function other than the entry, pointer parameters may overlap unless they say ``restrict``.
    """
    roots: dict[str, tuple[str | None, str]] = {}
    pointers = [p for p in function.parameters if p.pointer]
    apart = function.entry or len(pointers) < 2 or all(p.restrict or p.const for p in pointers)
    for parameter in pointers:
        roots[parameter.name] = (parameter.name if apart else None, "")
    types = types_in(unit, function)
    for node in function.body.find("init_declarator", "array_declarator"):
        name = declared_name(node)
        if types.get(name, "").endswith("[]"):
            roots.setdefault(name, (name, ""))
        elif types.get(name, "").endswith("*") and node.kind == "init_declarator":
            roots[name] = _pointee(node.part("value"), roots)
    for name, ctype in types.items():
        if ctype.endswith("[]") and name not in roots:
            roots[name] = (name, "")  # a constant table at namespace scope
    for node in function.body.find("assignment_expression", "update_expression"):
        target = node.child("left") or node.child("argument")
        if target is not None and target.text in roots and node.kind != "subscript_expression":
            roots[target.text] = (roots[target.text][0], "?")
    return roots


def _pointee(value: Node, roots: dict[str, tuple[str | None, str]]) -> tuple[str | None, str]:
    if value.kind == "parenthesized_expression":
        return _pointee(value.named_children[0], roots)
    if value.kind == "identifier":
        return roots.get(value.text, (None, "?"))
    if value.kind == "pointer_expression" and value.text.startswith("&"):
        inner = value.part("argument")
        if inner.kind == "subscript_expression" and inner.part("argument").kind == "identifier":
            root, before = roots.get(inner.part("argument").text, (None, "?"))
            return root, _sum(before, squeeze(inner.part("indices").text[1:-1]))
    if value.kind == "binary_expression" and value.part("operator").text in ("+", "-"):
        root, before = _pointee(value.part("left"), roots)
        sign = "" if value.part("operator").text == "+" else "-"
        return root, _sum(before, sign + squeeze(value.part("right").text))
    return None, "?"


def _sum(left: str, right: str) -> str:
    if not left:
        return right
    return left + right if right.startswith("-") else f"{left}+{right}"


@lru_cache(maxsize=512)
def offsets_in(unit: Unit, function: Function) -> dict[str, str]:
    """Constant integers of a function that are sums or products of others, e.g. ``start``: "row*n"."""
    found: dict[str, str] = {}
    types = types_in(unit, function)
    for node in function.body.find("declaration"):
        qualifiers = [child.text for child in node.children if child.kind == "type_qualifier"]
        for child in node.children:
            value = child.child("value") if child.kind == "init_declarator" else None
            name = declared_name(child)
            if "const" in qualifiers and value is not None and value.kind == "binary_expression":
                if types.get(name) and not types[name].endswith(("*", "]", "?", "float", "double")):
                    found[name] = _spelled_out(squeeze(value.text), found)
    return found


def _spelled_out(offset: str, known: dict[str, str]) -> str:
    """The offset with constants that are whole terms written out."""
    terms = [known.get(term, term) for term in split_terms(offset)]
    return "".join(term if i == 0 or term.startswith("-") else "+" + term for i, term in enumerate(terms))


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

    def on_comment(self, node: Node) -> None: ...

    def on_preproc_call(self, node: Node) -> None: ...

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
        offset = _sum(before, squeeze(index.text) if index else "0")
        into.append(Access(node, base.text, root, index, _spelled_out(offset, self.offsets)))

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
            root, offset = _pointee(argument, self.roots)
            base = next((n.text for n in argument.find("identifier") if n.text in self.roots), "")
            self.opaque |= inner is not None or not base
            access = Access(argument, base, root, None, _spelled_out(offset or "0", self.offsets))
            (self.stores if side == "to" else self.loads).append(access)
            self.reads.update(n.text for n in argument.find("identifier") if n.text != base)

    def on_lambda_expression(self, node: Node) -> None:
        self.opaque = True

    def jump(self, node: Node) -> None:
        self.jumps = True
        for child in node.named_children:
            self.visit(child)

    on_break_statement = on_continue_statement = on_return_statement = on_goto_statement = jump
    on_while_statement = on_do_statement = on_for_range_loop = on_try_statement = on_lambda_expression


@lru_cache(maxsize=4096)
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


@dataclass(frozen=True, eq=False)
class Reduction:
    """``name`` gathers values by ``op`` ("+", "*", "max", "min"); ``node``: the statement that does it.

    ``keeps_nan``: a maximum or minimum that hands a NaN on, which OpenMP's own reduction does not.
    """

    name: str
    op: str
    node: Node
    value: Node
    keeps_nan: bool = False

    def with_value(self, name: str, value: str) -> str:
        """The statement with another accumulator and value."""
        parts = {node: name for node in self.node.find("identifier") if node.text == self.name}
        seen = [node for node in self.node.walk() if node.named and node.text == self.value.text]
        parts |= {
            node: value for node in seen if not any(other.covers(node) for other in seen if other is not node)
        }
        return self.node.replacing(parts)


def reduction_of(statement: Node) -> Reduction | None:
    """The reduction that a statement is: ``s += e``, ``m = std::max(m, e)``, ``m = m > e ? m : e``, ``if (e > m) m = e``."""
    if statement.kind == "if_statement" and statement.child("alternative") is None:
        return _guarded(statement)
    if statement.kind != "expression_statement" or not statement.named_children:
        return None
    node = statement.named_children[0]
    if node.kind != "assignment_expression" or node.part("left").kind != "identifier":
        return None
    name, op, right = node.part("left").text, node.part("operator").text, node.part("right")
    if op in _ADDITIVE:
        return None if right.mentions(name) else Reduction(name, _ADDITIVE[op], statement, right)
    if op != "=":
        return None
    if (
        right.kind == "binary_expression"
        and right.part("left").text == name
        and right.part("operator").text in "+*"
    ):
        value = right.part("right")
        return (
            None if value.mentions(name) else Reduction(name, right.part("operator").text, statement, value)
        )
    if right.kind == "call_expression" and called(right).removesuffix("f").removeprefix("f") in (
        "max",
        "min",
    ):
        arguments = right.part("arguments").named_children
        others = [a for a in arguments if a.text != name]
        if len(arguments) == 2 and len(others) == 1 and not others[0].mentions(name):
            return Reduction(name, "max" if "max" in called(right) else "min", statement, others[0])
    return _chosen(statement, name, right) if right.kind == "conditional_expression" else None


def _extreme(condition: Node, name: str, kept: bool) -> tuple[str, Node] | None:
    """The operation and value of ``value > name`` (or mirrored), where the value is taken if true."""
    if condition.kind in ("parenthesized_expression", "condition_clause"):
        return _extreme(condition.named_children[0], name, kept)
    if condition.kind != "binary_expression" or condition.part("operator").text[0] not in "<>":
        return None
    left, right = condition.part("left"), condition.part("right")
    greater = condition.part("operator").text[0] == ">"
    if left.text == name and not right.mentions(name):
        return ("min" if greater != kept else "max"), right
    if right.text == name and not left.mentions(name):
        return ("max" if greater != kept else "min"), left
    return None


def _chosen(statement: Node, name: str, choice: Node) -> Reduction | None:
    yes, no, condition = (choice.part(role) for role in ("consequence", "alternative", "condition"))
    keeps_nan = condition.kind == "binary_expression" and condition.part("operator").text == "||"
    if keeps_nan:
        if (
            squeeze(condition.part("right").text) != f"{squeeze(yes.text)}!={squeeze(yes.text)}"
            or yes.text == name
        ):
            return None
        condition = condition.part("left")
    found = _extreme(condition, name, kept=yes.text == name)
    taken = no if yes.text == name else yes
    if found is None or name not in (yes.text, no.text) or taken.text != found[1].text:
        return None
    return Reduction(name, found[0], statement, found[1], keeps_nan)


def _guarded(statement: Node) -> Reduction | None:
    body = statement.part("consequence")
    inner = body.named_children if body.kind == "compound_statement" else [body]
    if len(inner) != 1 or inner[0].kind != "expression_statement" or not inner[0].named_children:
        return None
    node = inner[0].named_children[0]
    if node.kind != "assignment_expression" or node.part("operator").text != "=":
        return None
    found = _extreme(statement.part("condition"), node.part("left").text, kept=False)
    if found is None or found[1].text != node.part("right").text or node.part("left").kind != "identifier":
        return None
    return Reduction(node.part("left").text, found[0], statement, found[1])


def reductions(unit: Unit, loop: Loop) -> tuple[Reduction, ...] | None:
    """The reductions of a loop's body; None where it writes an outer scalar in any other way."""
    whole = effects(unit, loop.function, loop.body)
    found: list[Reduction] = []
    for name in sorted(whole.writes):
        writers = [s for s in loop.statements if s.kind != "preproc_call" and s.mentions(name)]
        reduction = reduction_of(writers[0]) if len(writers) == 1 else None
        if reduction is None or reduction.name != name:
            return None
        found.append(reduction)
    return tuple(sorted(found, key=lambda r: r.node.start))


def split_terms(offset: str) -> list[str]:
    """The summands of an offset, outer parentheses left whole: "r*n+j" -> ["r*n", "j"]."""
    return _split(offset, "+-")


def _split(text: str, at: str) -> list[str]:
    parts: list[str] = []
    depth, part = 0, ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char in at and depth == 0 and part:
            parts.append(part)
            part = "-" if char == "-" else ""
        else:
            part += char
    return [*parts, part] if part else parts


def lane(access: Access, var: str) -> str | None:
    """How an access follows a loop: equal lanes meet only in the same iteration.

    "unit: rest" where the offset is ``var + rest``; "row E" where it has a term ``var * E``; None where it does
    not move with ``var`` or in a way this cannot tell.
    """
    if "?" in access.offset or access.root is None:
        return None
    terms = split_terms(access.offset)
    moving = [term for term in terms if re.search(rf"\b{re.escape(var)}\b", term)]
    if len(moving) != 1:
        return None
    rest = sorted(term for term in terms if term is not moving[0] and term != "0")
    if moving[0] == var:
        return "unit: " + " ".join(rest)
    return "row " + moving[0] if _width(moving[0], var) else None


def _width(term: str, var: str) -> str | None:
    """How far apart a term puts neighbouring iterations: "n" for "r*n" and "(b*rows+r)*n"; None if unclear."""
    factors = _split(term, "*")
    moving = [factor for factor in factors if re.search(rf"\b{re.escape(var)}\b", factor)]
    if len(factors) < 2 or len(moving) != 1 or re.search(r"[/%\[]", term):
        return None
    if moving[0] != var:
        inner = split_terms(moving[0][1:-1]) if moving[0].startswith("(") else []
        around = [part for part in inner if re.search(rf"\b{re.escape(var)}\b", part)]
        if len(around) != 1 or not (around[0] == var or (moving[0] == factors[0] and _width(around[0], var))):
            return None
        if around[0] != var:
            return None if factors[-1] == moving[0] else f"{_width(around[0], var)}*{factors[-1]}"
    return "*".join(factor for factor in factors if factor is not moving[0])


def follow_together(first: Effects, second: Effects, var: str, other: str | None = None) -> bool:
    """Whether iteration i of one code touches nothing that any iteration but i of the other writes.

    ``other``: the second code's name of the loop variable, where it differs.
    """
    vars_of = {id(access): var for access in first.loads + first.stores}
    pairs = [(a, b) for a in first.stores for b in second.loads + second.stores]
    pairs += [(a, b) for a in second.stores for b in first.loads + first.stores]
    for a, b in pairs:
        if a.root is None or b.root is None or a.root == b.root:
            lanes = tuple(lane(access, vars_of.get(id(access), other or var)) for access in (a, b))
            if lanes[0] is None or lanes[0] != lanes[1]:
                return False
    return True


def independent(unit: Unit, loop: Loop, reducing: bool = True) -> bool:
    """Whether the iterations may run in any order, or at once with reduction clauses.

    Args:
        unit: the source.
        loop: a canonical loop of it.
        reducing: whether reductions are allowed.
    """
    found = effects(unit, loop.function, loop.body)
    if not found.simple or reductions(unit, loop) is None or (found.writes and not reducing):
        return False
    if not follow_together(found, found, loop.var):
        return False
    own = found.declared
    return all(_apart(unit, loop, store) for store in found.stores if store.root not in own)


def _apart(unit: Unit, loop: Loop, store: Access) -> bool:
    """Whether a store stays within its iteration's own row: "r*n+j" with j below n."""
    where = lane(store, loop.var)
    if where is None or where.startswith("unit"):
        return where is not None
    width = _width(where.removeprefix("row "), loop.var) or ""
    width = width[1:-1] if re.fullmatch(r"\([^()]*\)", width) else width
    rest = [
        t for t in split_terms(store.offset) if not re.search(rf"\b{re.escape(loop.var)}\b", t) and t != "0"
    ]
    inner = {i.var: i for i in unit.loops if i.within(loop) and i.body.covers(store.node)}
    known = offsets_in(unit, loop.function)
    ends = [
        known.get(squeeze(inner[t].bound), squeeze(inner[t].bound)) if t in inner else known.get(t, t)
        for t in rest
    ]
    if any(term.startswith("-") for term in rest) or any(i.first.startswith("-") for i in inner.values()):
        return False
    return not ends or ends == [width] or (len(ends) <= 2 and all(end == f"{width}/2" for end in ends))


def free_order(unit: Unit, loop: Loop) -> bool:
    """Whether the iterations may run in any order: OpenMP was told so, or this file can see it."""
    return loop.parallel or independent(unit, loop)


def invariant(unit: Unit, node: Node, loop: Loop) -> bool:
    """Whether an expression in a loop has the same value in each iteration and no effect."""
    inside, found = effects(unit, loop.function, node), effects(unit, loop.function, loop.body)
    moving = found.writes | found.declared | {loop.var}
    names = {n.text for n in node.find("identifier")}
    fixed = not inside.opaque and not inside.writes and not inside.stores and not names & moving
    stored = {access.root for access in found.stores}
    return fixed and not found.opaque and all(load.root and load.root not in stored for load in inside.loads)
