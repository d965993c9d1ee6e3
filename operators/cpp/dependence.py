"""Whether iterations of a loop depend on each other: reductions, and elements that two may share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from operators.cpp.effects import Access, Effects, effects
from operators.cpp.nodes import Node
from operators.cpp.offsets import offsets_in, split_at, split_terms
from operators.cpp.scalars import called
from operators.cpp.structure import Loop, squeeze
from operators.cpp.syntax import Unit

_ADDITIVE = {"+=": "+", "-=": "+", "*=": "*"}


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
    """The reduction that a statement is, if any.

    ``s += e``, ``m = std::max(m, e)``, ``m = m > e ? m : e`` and ``if (e > m) m = e`` are, and mirror images.
    """
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


def lane(access: Access, var: str) -> str | None:
    """How an access follows a loop: equal lanes meet only in the same iteration.

    "unit: rest" where the offset is ``var + rest``; "row t" where one term ``t`` has ``var`` times something;
    None where it does not move with ``var`` or in a way this cannot tell.
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
    """How far apart a term puts neighbours: "n" for "r*n" and "(b*rows+r)*n"; None if unclear."""
    factors = split_at(term, "*")
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
