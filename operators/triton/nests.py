"""Rewrites of the order in which loops run, and of what is in one loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import calls, effects, hands_on, order_free, reads, writes
from operators.triton.memory import base
from operators.triton.rewrite import rewrite
from operators.triton.structure import Loop, Unit
from operators.triton.syntax import Edit, Edits, indented, renamed, squeeze


@rewrite(
    "interchange",
    needs="a loop around just one other; limits apart from each other, iterations of both in any order",
    reason="the inner loop is the one whose loads share lines, or the shorter one",
)
def interchange(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The headers change places."""
    for loop in unit.loops:
        inner = next((other for other in unit.loops if other.node in loop.body), None)
        if inner is None or len(loop.body) != 1 or not order_free(unit, inner):
            continue
        if loop.var in reads(unit, inner.call) or inner.var in reads(unit, loop.call):
            continue
        if effects(unit, inner.node):
            continue
        heads = [(unit.tree.start(one.node.target), unit.tree.end(one.call)) for one in (loop, inner)]
        texts = [unit.tree.data[start:end].decode() for start, end in heads]
        yield Edit(*heads[0], texts[1]), Edit(*heads[1], texts[0])


def _same_range(one: Loop, other: Loop) -> bool:
    ranges = [tuple(map(squeeze, (loop.start, loop.stop, loop.step))) for loop in (one, other)]
    return ranges[0] == ranges[1] and "tl.static_range" not in (one.kind, other.kind)


def neighbours(unit: Unit) -> Iterator[tuple[Loop, Loop, tuple[cst.CSTNode, ...]]]:
    """Loops over one range in one block, each with the next such loop, and the lines between them."""
    for one in unit.loops:
        block = next((body for body in _bodies(unit, one) if one.node in body), ())
        after = block[block.index(one.node) + 1 :] if block else ()
        for i, line in enumerate(after):
            other = next((loop for loop in unit.loops if loop.node is line), None)
            if other is not None:
                if _same_range(one, other):
                    yield one, other, after[:i]
                break


def _bodies(unit: Unit, loop: Loop) -> Iterator[tuple[cst.CSTNode, ...]]:
    yield loop.jit.body
    yield from (other.body for other in unit.loops if other.jit is loop.jit)


@rewrite(
    "fuse_loops",
    needs="two neighbouring loops over one range, of which the second needs nothing that the first computes",
    reason="one pass over the data instead of two",
)
def fuse_loops(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The second body goes behind the first one; lines that both have stand once."""
    for one, other, between in neighbours(unit):
        moved = set().union(*(writes(unit, line) | reads(unit, line) for line in between))
        first, fresh = writes(unit, one.node), _fresh(unit, other.body)
        needed = (reads(unit, other.node) - fresh) - {other.var}
        if needed & first or moved & first or effects(unit, one.node) or effects(unit, other.node):
            continue
        if hands_on(unit, one.body) & writes(unit, other.node) or (one.var in first - {one.var}):
            continue
        temporary = (fresh & first) - {one.var}
        after = {n for line in _rest(unit, one.jit.body, other) for n in reads(unit, line)}
        if temporary & after:
            continue
        seen = {squeeze(unit.tree.block([line])) for line in one.body}
        lines = [line for line in other.body if squeeze(unit.tree.block([line])) not in seen]
        shared = {n for line in other.body if line not in lines for n in writes(unit, line)}
        if not lines or any(_times_written(unit, one.body, name) != 1 for name in shared):
            continue
        if any(writes(unit, line) & shared for line in lines):
            continue
        names = {one.var: one.var} if one.var == other.var else {other.var: one.var}
        text = "".join(unit.tree.block([line]) for line in lines)
        text = renamed(text, {} if one.var == other.var else names)
        yield unit.tree.after(one.body[-1], text), unit.tree.drop(other.node)


def _times_written(unit: Unit, body: Sequence[cst.CSTNode], name: str) -> int:
    return sum(name in writes(unit, line) for line in body)


def _fresh(unit: Unit, body: Sequence[cst.CSTNode]) -> frozenset[str]:
    """Names that each iteration writes before it reads them."""
    return frozenset(n for line in body for n in writes(unit, line)) - hands_on(unit, body)


def _rest(unit: Unit, body: Sequence[cst.CSTNode], loop: Loop) -> Sequence[cst.CSTNode]:
    return [line for line in body if unit.tree.start(line) > unit.tree.end(loop.node)]


@rewrite(
    "split_loop",
    needs="a loop with two results that need nothing of each other",
    reason="each half holds fewer registers, and more warps fit on a processor",
)
def split_loop(unit: Unit, _: Brief) -> Iterator[Edits]:
    """One loop per result; what both need is computed in both."""
    for loop in unit.loops:
        handed = hands_on(unit, loop.body)
        ends = [line for line in loop.body if handed & writes(unit, line) or effects(unit, line)]
        plain = all(isinstance(line, cst.SimpleStatementLine) for line in loop.body)
        if not plain or len(ends) < 2 or "store" in "".join(unit.tree.text(line) for line in ends[1:-1]):
            continue
        for end in ends:
            own = _slice(unit, loop, [end])
            rest = _slice(unit, loop, [line for line in ends if line is not end])
            sides = [{n for line in side if line in ends for n in writes(unit, line)} for side in (own, rest)]
            if not sides[0].isdisjoint(sides[1]) or any(line in own and line in rest for line in ends):
                continue
            if (
                len(own) == len(loop.body)
                or len(rest) == len(loop.body)
                or _shares_memory(unit, loop, own, rest)
            ):
                continue
            start = unit.tree.start(loop.node)
            head = unit.tree.data[start : unit.tree.end(loop.call)].decode() + ":\n"
            texts = [head + indented("".join(unit.tree.block([s]) for s in side)) for side in (own, rest)]
            place = Edit(*unit.tree.lines(loop.node), indented("".join(texts), unit.tree.indent(loop.node)))
            yield (place,)


def _slice(unit: Unit, loop: Loop, ends: Sequence[cst.CSTNode]) -> list[cst.CSTNode]:
    """The lines of a loop that some of them depend on, themselves included."""
    kept, needed = list(ends), {n for line in ends for n in reads(unit, line)}
    for _ in loop.body:
        for line in loop.body:
            if line not in kept and writes(unit, line) & needed:
                kept.append(line)
                needed |= reads(unit, line)
    return [line for line in loop.body if line in kept]


def _shares_memory(unit: Unit, loop: Loop, one: Sequence[cst.CSTNode], other: Sequence[cst.CSTNode]) -> bool:
    """Whether one half stores to what the other loads or stores."""
    for mine, others in ((one, other), (other, one)):
        stored = {base(unit, loop.jit, call) for line in mine for call in effects(unit, line)}
        used = {base(unit, loop.jit, c) for line in others for c in calls(unit, line, "load", "store")}
        if stored & used:
            return True
    return False


@rewrite(
    "reverse_pass",
    needs="the second of two loops over one range, whose iterations may run in any order",
    reason="it begins with what the first pass read last, which is still in the cache",
)
def reverse_pass(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The loop's variable counts down from the last tile."""
    for _one, loop, _between in neighbours(unit):
        if not order_free(unit, loop) or loop.step == "1" or squeeze(loop.start) != "0":
            continue
        back = unit.tree.fresh("back")
        step, stop = loop.step, loop.stop
        line = f"{loop.var} = ({stop} - 1) // {step} * {step} - {back}\n"
        yield unit.tree.swap(loop.node.target, back), unit.tree.before(loop.body[0], line)


NESTS = (interchange, fuse_loops, split_loop, reverse_pass)
