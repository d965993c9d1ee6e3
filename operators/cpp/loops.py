"""Rewrites of loops as a whole: swapped, or freed of what does not change in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.clauses import Directive
from operators.cpp.dependence import free_order, independent, invariant
from operators.cpp.effects import effects
from operators.cpp.nodes import Node
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import type_of, types_in
from operators.cpp.structure import Loop
from operators.cpp.syntax import Edit, Edits, Unit, block_siblings, braced, replace_loop
from operators.proposal import Brief


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


LOOPS = (interchange, unswitch, hoist)
