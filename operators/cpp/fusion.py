"""Two loops made one, and one made two."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.clauses import Directive
from operators.cpp.dependence import follow_together
from operators.cpp.effects import Effects, effects
from operators.cpp.loops import loose, next_loop
from operators.cpp.nodes import Node
from operators.cpp.rewrite import rewrite
from operators.cpp.structure import Loop, writes_to
from operators.cpp.syntax import Edit, Edits, Unit, braced, reindent, replace_loop
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


FUSION = (fuse, fission)
