"""Rewrites of two passes over one row: the second is given the first one's results, or computes them anew."""

from __future__ import annotations

from collections.abc import Iterator

from operators.cpp.dependence import lane
from operators.cpp.effects import effects
from operators.cpp.loops import next_loop
from operators.cpp.nodes import Node
from operators.cpp.offsets import roots_in
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import called, is_exponential, type_of, types_in
from operators.cpp.structure import Loop, squeeze
from operators.cpp.syntax import Edit, Edits, Unit, braced, reindent
from operators.proposal import Brief


@rewrite(
    "keep_values",
    needs="a costly value computed in one pass and again in a later one that stores into a float output",
    reason="the first pass leaves the value in the output, the second reads it instead of computing it",
)
def keep_values(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Stores the value in the first pass, loads it in the second."""
    for first in unit.loops:
        second, between = next_loop(unit, first)
        if second is None or first.same_range != second.same_range or first.parallel or not first.unit_step:
            continue
        one, two = (effects(unit, loop.function, loop.body) for loop in (first, second))
        gap = effects(unit, first.function, *between)
        stores = [
            a for a in two.stores if (lane(a, second.var) or "").startswith("unit") and a.index is not None
        ]
        if len(two.stores) != 1 or not stores or not one.simple or not two.simple or gap.opaque or gap.stores:
            continue
        target = stores[0]
        types = types_in(unit, first.function)
        touched = {a.root for a in one.loads + one.stores + two.loads + gap.loads}
        if (
            target.root in touched
            or type_of(target.node, types, unit) != "float"
            or gap.declared & {target.base}
        ):
            continue
        assigned = target.node.parent
        if (
            assigned is None
            or assigned.kind != "assignment_expression"
            or assigned.part("operator").text != "="
        ):
            continue
        for call in _costly_values(first):
            text = call.with_names({first.var: second.var})
            same = [
                n for n in assigned.part("right").find("call_expression") if squeeze(n.text) == squeeze(text)
            ]
            names = {n.text for n in call.find("identifier")}
            if (
                not same
                or names & (one.writes | two.writes | gap.writes | one.declared)
                or _conditional(call, first)
            ):
                continue
            if type_of(call, types, unit) != "float":
                continue
            kept = target.node.with_names({second.var: first.var})
            statement = _statement_of(call, first)
            again = [n for n in statement.find("call_expression") if n.text == call.text]
            line = f"{kept} = {call.text};\n"
            changed = statement.replacing(dict.fromkeys(again, kept))
            block = first.body.kind == "compound_statement"
            body, base = (line + changed, _inner(first)) if block else (braced(line + changed), first.indent)
            yield (
                Edit(statement.start, statement.end, reindent(body, base).lstrip()),
                *(Edit(n.start, n.end, target.node.text) for n in same),
            )


@rewrite(
    "recompute_values",
    needs="a pass that stores a value which only the next pass reads back, from what it stored itself",
    reason="computing twice may be cheaper than writing and reading the row once more",
)
def recompute_values(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Drops the store of the first pass; the second computes the value again."""
    for first in unit.loops:
        second, between = next_loop(unit, first)
        if second is None or first.same_range != second.same_range or not first.innermost or first.parallel:
            continue
        one, two = (effects(unit, loop.function, loop.body) for loop in (first, second))
        gap = effects(unit, first.function, *between)
        if len(one.stores) != 1 or not one.simple or not two.simple or gap.opaque or gap.stores:
            continue
        stored = one.stores[0]
        assignment = stored.node.parent
        plain = assignment is not None and assignment.kind == "assignment_expression"
        if (
            assignment is None
            or not plain
            or assignment.part("operator").text != "="
            or assignment.part("right") is stored.node
        ):
            continue
        statement, value = assignment.parent, assignment.part("right")
        if (
            statement is None
            or statement.parent is not first.body
            or _written_only_in(unit, first, second, stored.root)
        ):
            continue
        if value.kind == "identifier" and value.text in one.declared:
            made = [d for d in first.body.find("init_declarator") if d.part("declarator").text == value.text]
            value = made[0].part("value") if len(made) == 1 else value
        found = effects(unit, first.function, value)
        if found.reads & (one.declared | one.writes | two.writes) or any(
            a.root == stored.root for a in found.loads
        ):
            continue
        text = value.with_names({first.var: second.var})
        name = unit.fresh("again")
        uses = [a for a in two.loads if a.root == stored.root]
        here = stored.node.with_names({first.var: second.var})
        whole = [a for a in two.stores if a.root == stored.root]
        if not uses or len(whole) != 1 or any(squeeze(a.node.text) != squeeze(here) for a in [*uses, *whole]):
            continue
        types = types_in(unit, first.function)
        ctype = type_of(stored.node, types, unit)
        if ctype not in ("float", "double"):
            continue
        edits = _recomputed(first, second, statement, assignment, stored.node, text, name, ctype)
        if edits is not None:
            yield edits


def _recomputed(
    first: Loop,
    second: Loop,
    statement: Node,
    assignment: Node,
    stored: Node,
    text: str,
    name: str,
    ctype: str,
) -> Edits | None:
    store = next((n for n in second.body.find("assignment_expression") if squeeze(n.part("left").text) ==
                  squeeze(stored.with_names({first.var: second.var}))), None)  # fmt: skip
    if store is None or store.parent is None:
        return None
    read = squeeze(store.part("left").text)
    parts = {n: name for n in second.body.find("subscript_expression") if squeeze(n.text) == read}
    parts.pop(store.part("left"), None)
    operator, value = store.part("operator").text, store.part("right")
    value_text = value.replacing({n: t for n, t in parts.items() if value.covers(n)})
    if operator != "=":
        value_text = f"{name} {operator[:-1]} ({value_text})"
    outside = [n for n in parts if not value.covers(n)]
    line = f"const {ctype} {name} = {text};\n{store.part('left').text} = {value_text};"
    if outside or store.parent.parent is not (
        second.body if second.body.kind == "compound_statement" else second.node
    ):
        return None
    line = (
        reindent(line, _inner(second)).lstrip() if second.body.kind == "compound_statement" else braced(line)
    )
    keep = f"const {ctype} {name} = {assignment.part('right').text};"
    others = [n for n in first.body.find("subscript_expression") if squeeze(n.text) == squeeze(stored.text)]
    edits = [Edit(statement.start, statement.end, keep)] if len(others) > 1 else [_gone(statement)]
    edits += [Edit(n.start, n.end, name) for n in others if n is not stored]
    return *edits, Edit(store.parent.start, store.parent.end, line)


def _gone(statement: Node) -> Edit:
    """Takes a statement away, with its line where it stands alone."""
    start = statement.data.rfind(b"\n", 0, statement.start) + 1
    end = statement.data.find(b"\n", statement.end) + 1
    alone = (
        end > 0
        and not (statement.data[start : statement.start] + statement.data[statement.end : end]).strip()
    )
    return Edit(start, end, "") if alone else Edit(statement.start, statement.end, "")


def _costly_values(loop: Loop) -> list[Node]:
    """Calls in a loop worth keeping, the outermost first, each text once."""
    names = {"exp", "expf", "tanh", "tanhf", "sqrt", "sqrtf", "log", "logf"}
    found: dict[str, Node] = {}
    for call in loop.body.find("call_expression"):
        if called(call) in names or is_exponential(call):
            found.setdefault(squeeze(call.text), call)
    return list(found.values())


def _conditional(node: Node, loop: Loop) -> bool:
    kinds = ("if_statement", "conditional_expression", "for_statement")
    return any(above.kind in kinds for above in node.above() if loop.body.covers(above))


def _statement_of(node: Node, loop: Loop) -> Node:
    """The statement of the loop's body that a node belongs to."""
    return next(statement for statement in loop.statements if statement.covers(node))


def _written_only_in(unit: Unit, first: Loop, second: Loop, root: str | None) -> bool:
    """Whether a buffer is also touched elsewhere, so that dropping a store could be seen."""
    roots = roots_in(unit, first.function)
    if root is None or root not in {name for name, _ in roots.values()}:
        return True
    whole = effects(unit, first.function, first.function.body)
    inside = (first.body, second.body)
    touched = [a for a in whole.loads + whole.stores if a.root == root]
    return whole.opaque or any(not any(body.covers(a.node) for body in inside) for a in touched)


def _inner(loop: Loop) -> str:
    return loop.indent + "    "


PASSES = (keep_values, recompute_values)
