"""Rewrites of loops as a whole: fused, split, swapped, freed of what does not change in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.clauses import Directive
from operators.cpp.dependence import follow_together, free_order, independent, invariant
from operators.cpp.effects import Effects, effects
from operators.cpp.nodes import Node
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import type_of, types_in
from operators.cpp.structure import Loop, writes_to
from operators.cpp.syntax import Edit, Edits, Unit, block_siblings, braced, reindent, replace_loop
from operators.proposal import Brief


@rewrite(
    "fuse",
    needs="neighbouring loops over one range; iteration i of the second needs only iteration i of the first",
    reason="one pass instead of two: what was loaded is still in a register",
)
def fuse(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Merges two loops; declarations that stood between them move before the first."""
    for first in unit.loops:
        second, between = next_loop(unit, first)
        if second is None or first.same_range != second.same_range or not loose(first):
            continue
        one, two = (effects(unit, loop.function, loop.body) for loop in (first, second))
        gap = effects(unit, first.function, *between)
        pragma = _merged(first, second)
        if pragma is None or not may_fuse(first, second, one, two) or not _may_pass(gap, one):
            continue
        renamed = (
            second.node.with_names({second.var: first.var}) if second.var != first.var else second.node.text
        )
        body = renamed[second.body.start - second.node.start :]
        bodies = [first.inner_text, body.strip()[1:-1] if body.strip().startswith("{") else body]
        if one.declared & (two.declared | two.reads):
            bodies = [braced(text) for text in bodies]
        lines = [statement.text for statement in between]
        text = "\n".join(
            [*lines, *pragma, f"{first.header()} " + braced("\n".join(t.strip("\n") for t in bodies))]
        )
        yield (Edit(first.start, second.end, reindent(text, first.indent)),)


@rewrite(
    "fission",
    needs="a loop whose statements fall into two groups that meet only within an iteration",
    reason="two small loops fit the registers, and each may become vectors on its own",
)
def fission(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Splits a loop in two; constants that the second half needs are computed again."""
    for loop in unit.loops:
        groups = _groups(loop)
        for cut in range(1, len(groups)):
            halves = groups[:cut], groups[cut:]
            if not loose(loop) or any(all(g[-1].kind == "declaration" for g in half) for half in halves):
                continue
            again = _needed_again(unit, loop, *halves)
            if again is None:
                continue
            texts = []
            for half in (halves[0], [[node] for node in again] + halves[1]):
                written = effects(unit, loop.function, *(node for group in half for node in group)).writes
                pragmas = _pragmas_for(loop, written)
                lines = [unit.data[group[0].start : group[-1].end].decode() for group in half]
                texts.append("\n".join([*pragmas, f"{loop.header()} " + braced("\n".join(lines))]))
            yield (replace_loop(loop, "\n".join(texts)),)


@rewrite(
    "interchange",
    needs="a loop around just one other, limits apart from each other, iterations of both in any order",
    reason="the loop that walks memory in order becomes the inner one, or the one with reuse the outer",
)
def interchange(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Swaps two loops; ``parallel for`` stays outside, ``simd`` is dropped."""
    for outer in unit.loops:
        *before, last = [s for s in outer.statements if s.kind != "preproc_call"] or [outer.body]
        inner = unit.loop_at(last)
        directive = Directive.of(outer.omp)
        if inner is None or directive.has("collapse") or "simd" in directive.words or len(outer.pragmas) > 1:
            continue
        moved = effects(unit, outer.function, *before)
        if (
            any(s.kind != "declaration" for s in before)
            or not moved.simple
            or moved.stores
            or not loose(outer)
        ):
            continue
        limits = f"{inner.first} {inner.bound} {inner.step}"
        if any(re.search(rf"\b{name}\b", limits) for name in moved.declared | {outer.var}):
            continue
        if (
            not free_order(unit, outer)
            or not independent(unit, inner)
            or len(inner.pragmas) > 1
            or inner.parallel
        ):
            continue
        lines = "\n".join(statement.text for statement in before)
        pragma = f"#pragma omp {directive}\n" if directive.words else ""
        body = braced(f"{lines}\n{inner.inner_text}")
        yield (replace_loop(outer, f"{pragma}{inner.header()} {{\n{outer.header()} {body}\n}}"),)


@rewrite(
    "unswitch",
    needs="an `if` in a loop whose condition does not change in it",
    reason="the question is asked once, and both loops are free of branches",
)
def unswitch(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Moves the ``if`` outside, with a loop in each branch."""
    for loop in unit.loops:
        for node in loop.statements:
            if node.kind != "if_statement" or not loose(loop) or "constexpr" in node.text[:14]:
                continue
            condition = node.part("condition")
            if not invariant(unit, condition, loop) or effects(unit, loop.function, condition).loads:
                continue
            other = node.child("alternative")
            yes = _statements(node.part("consequence"))
            no = _statements(other.named_children[0]) if other is not None else ""
            pragmas = "".join(unit.data[p.start : p.end].decode().rstrip("\n") + "\n" for p in loop.pragmas)
            loops = [pragmas + loop.node.replacing({node: branch}) for branch in (yes, no)]
            yield (replace_loop(loop, f"if {condition.text} {braced(loops[0])} else {braced(loops[1])}"),)


@rewrite(
    "hoist",
    needs="a division or call in a loop of which nothing changes in that loop",
    reason="computed once before the loop instead of once an iteration",
)
def hoist(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Moves the expression before the loop."""
    for loop in unit.loops:
        if not loose(loop):
            continue
        types = types_in(unit, loop.function)
        for node in loop.body.find("binary_expression", "call_expression"):
            if not _costly(node) or not invariant(unit, node, loop) or _hoisted_with(unit, node, loop):
                continue
            ctype, found = type_of(node, types, unit), effects(unit, loop.function, node)
            outside = any(node.mentions(around.var) for around in unit.loops if loop.within(around))
            if ctype is None or (ctype == "int" and not outside) or found.loads:
                continue
            name = unit.fresh("fixed")
            same = [n for n in loop.body.find(node.kind) if n.text == node.text]
            line = f"{loop.indent}const auto {name} = {node.text};\n"
            yield (Edit(loop.start, loop.start, line), *(Edit(n.start, n.end, name) for n in same))


def next_loop(unit: Unit, first: Loop) -> tuple[Loop | None, list[Node]]:
    """The canonical loop after this one in its block, and the declarations between them."""
    siblings = block_siblings(first.node)
    between: list[Node] = []
    for node in siblings[siblings.index(first.node) + 1 :]:
        if node.kind == "declaration":
            between.append(node)
        else:
            return unit.loop_at(node), between
    return None, between


def loose(loop: Loop) -> bool:
    """Whether statements may be put beside a loop: it stands in a block, and no ``collapse`` holds it."""
    parent = loop.node.parent
    held = loop.parent is not None and "collapse" in loop.parent.omp
    return parent is not None and parent.kind == "compound_statement" and not held


def may_fuse(first: Loop, second: Loop, one: Effects, two: Effects) -> bool:
    """Whether the bodies of two loops over one range may run iteration by iteration."""
    if not one.simple or not two.simple or one.writes & (two.reads | two.writes) or two.writes & one.reads:
        return False
    limits = set(re.findall(r"\w+", f"{second.bound} {second.first}"))
    if limits & (one.writes | two.writes) or (
        first.var != second.var and first.var in two.reads | two.declared
    ):
        return False
    return follow_together(one, two, first.var, second.var)


def _may_pass(gap: Effects, loop: Effects) -> bool:
    """Whether declarations may move before a loop that stood before them."""
    stored = {access.root for access in loop.stores}
    clear = (
        not gap.reads & loop.writes and not gap.writes and not gap.stores and not gap.declared & loop.declared
    )
    return clear and not gap.opaque and all(load.root and load.root not in stored for load in gap.loads)


def _merged(first: Loop, second: Loop) -> list[str] | None:
    """The pragma of both loops together; None where they do not go together."""
    if not first.pragmas and not second.pragmas:
        return []
    one, two = Directive.of(first.omp), Directive.of(second.omp)
    if (
        len(first.pragmas) != 1
        or len(second.pragmas) != 1
        or one.without("reduction") != two.without("reduction")
    ):
        return None
    for name, argument in two.clauses:
        if name == "reduction":
            one = one.plus(name, argument)
    return [f"#pragma omp {one}"] if one.words else None


def _groups(loop: Loop) -> list[list[Node]]:
    """The body's statements, each with the pragmas before it."""
    groups: list[list[Node]] = []
    waiting: list[Node] = []
    for node in loop.statements:
        waiting.append(node)
        if node.kind != "preproc_call":
            groups.append(waiting)
            waiting = []
    return groups


def _needed_again(unit: Unit, loop: Loop, *halves: list[list[Node]]) -> list[Node] | None:
    """The declarations of the first half that the second needs too; None where the halves hang together."""
    nodes = [[node for group in half for node in group] for half in halves]
    one, two = (effects(unit, loop.function, *half) for half in nodes)
    again: list[Node] = []
    for node in reversed([n for n in nodes[0] if n.kind == "declaration"]):
        if effects(unit, loop.function, node).declared & effects(
            unit, loop.function, *again, *nodes[1]
        ).reads | (_bases(unit, loop, node, [*again, *nodes[1]])):
            again.insert(0, node)
    copied = effects(unit, loop.function, *again)
    left = (one.declared - copied.declared) & (two.reads | {a.base for a in two.loads + two.stores})
    if (
        left
        or not one.simple
        or not two.simple
        or one.writes & (two.reads | two.writes)
        or two.writes & one.reads
    ):
        return None
    stored = {access.root for access in one.stores + two.stores}
    if copied.writes or copied.stores or copied.reads & (one.writes | two.writes):
        return None
    if any(load.root in stored for load in copied.loads) or not follow_together(one, two, loop.var):
        return None
    local = {access.root for access in one.stores} & one.declared
    return None if local or _changed(nodes[0], copied.declared) else again


def _bases(unit: Unit, loop: Loop, node: Node, users: list[Node]) -> frozenset[str]:
    """The pointers that a declaration makes and these statements use."""
    found = effects(unit, loop.function, *users)
    return effects(unit, loop.function, node).declared & {
        access.base for access in found.loads + found.stores
    }


def _changed(nodes: list[Node], names: frozenset[str]) -> bool:
    return any(writes_to(node, name) for node in nodes for name in names)


def _pragmas_for(loop: Loop, written: frozenset[str]) -> list[str]:
    """A loop's pragmas for a part of its body: reductions of other scalars are left out."""
    if not loop.omp:
        return [pragma.text.strip() for pragma in loop.pragmas]
    directive = Directive.of(loop.omp)
    kept: list[tuple[str, str]] = []
    for name, argument in directive.clauses:
        if name == "reduction":
            op, names = argument.split(":")
            mine = [n.strip() for n in names.split(",") if n.strip() in written]
            kept += [(name, f"{op.strip()} : {', '.join(mine)}")] if mine else []
        else:
            kept.append((name, argument))
    return [f"#pragma omp {Directive(directive.words, tuple(kept))}"]


def _statements(branch: Node) -> str:
    """A branch as statements: without its braces where it declares nothing."""
    if branch.kind != "compound_statement" or any(child.kind == "declaration" for child in branch.children):
        return branch.text
    return branch.text[1:-1].strip()


def _costly(node: Node) -> bool:
    divisions = (n.part("operator").text in "/%" for n in node.find("binary_expression"))
    return any(divisions) or any(True for _ in node.find("call_expression"))


def _hoisted_with(unit: Unit, node: Node, loop: Loop) -> bool:
    """Whether a larger expression around it is as constant, so that this one goes along."""
    parent = node.parent
    while parent is not None and parent.kind in ("parenthesized_expression", "argument_list"):
        parent = parent.parent
    kinds = ("binary_expression", "call_expression")
    return (
        parent is not None
        and parent.kind in kinds
        and loop.body.covers(parent)
        and invariant(unit, parent, loop)
    )


LOOPS = (fuse, fission, interchange, unswitch, hoist)
