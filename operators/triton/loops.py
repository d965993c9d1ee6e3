"""Rewrites of loops: how they are pipelined and unrolled, in which order they run, what is in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import calls, effects, hands_on, order_free, reads, writes
from operators.triton.knobs import Knobs, constexprs
from operators.triton.memory import base
from operators.triton.rewrite import rewrite
from operators.triton.structure import Loop, Unit
from operators.triton.syntax import Edit, Edits, indented, renamed, squeeze


def with_keyword(unit: Unit, loop: Loop, name: str, text: str) -> Edits:
    """Edits that make a loop a ``tl.range`` with a keyword."""
    at = unit.tree.end(loop.call.args[-1].value)
    head = [unit.tree.swap(loop.call.func, "tl.range")] if loop.kind == "range" else []
    return (*head, Edit(at, at, f", {name}={text}"))


def _number(
    unit: Unit, loop: Loop, keyword: str, knob: str, values: tuple[int, Sequence[int]]
) -> Edits | None:
    """The keyword with a tuning number; in a helper that is not launched there is no way to pass one."""
    if loop.jit not in unit.kernels or loop.kind == "tl.static_range" or keyword in loop.keywords:
        return None
    name = unit.tree.fresh(knob)
    knobs: Knobs = {name: values}
    added = constexprs(unit, loop.jit, knobs)
    return None if added is None else (*added, *with_keyword(unit, loop, keyword, name))


@rewrite(
    "pipeline_loop",
    needs="a loop with loads, without `num_stages`, in a kernel whose launch can pass a number",
    reason="loads of later iterations are under way, by asynchronous copies, while this one computes",
)
def pipeline_loop(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The number of stages is for the tuner."""
    for loop in unit.loops:
        edits = _number(unit, loop, "num_stages", "LOOP_STAGES", (2, (1, 2, 3, 4)))
        if edits and calls(unit, loop.node, "load"):
            yield edits


@rewrite(
    "unroll_loop",
    needs="a loop without `loop_unroll_factor`, in a kernel whose launch can pass a number",
    reason="more independent loads are in flight, and there are fewer branches",
)
def unroll_loop(unit: Unit, _: Brief) -> Iterator[Edits]:
    """How often is for the tuner."""
    for loop in unit.loops:
        edits = _number(unit, loop, "loop_unroll_factor", "UNROLL", (2, (1, 2, 4, 8)))
        if edits:
            yield edits


@rewrite(
    "static_loop",
    needs="a loop over at most 16 literal steps",
    reason="the compiler sees each iteration by itself and works out its addresses and conditions",
)
def static_loop(unit: Unit, _: Brief) -> Iterator[Edits]:
    """`tl.static_range` in its place."""
    for loop in unit.loops:
        literal = all(re.fullmatch(r"-?\d+", text) for text in (loop.start, loop.stop, loop.step))
        if not literal or loop.kind == "tl.static_range" or loop.keywords or loop.step == "0":
            continue
        if len(range(int(loop.start), int(loop.stop), int(loop.step))) <= 16:
            yield (unit.tree.swap(loop.call.func, "tl.static_range"),)


def _attribute(name: str, holds: Callable[[Unit, Loop], bool]) -> Callable[[Unit, Brief], Iterator[Edits]]:
    """The idea of a loop's yes-or-no attribute: given where it is not, taken away where it is."""

    def idea(unit: Unit, _: Brief) -> Iterator[Edits]:
        for loop in unit.loops:
            given = loop.keywords.get(name)
            if given is not None:
                before = loop.call.args[list(loop.call.args).index(given) - 1]
                yield (Edit(unit.tree.end(before.value), unit.tree.end(given.value), ""),)
            elif loop.kind != "tl.static_range" and holds(unit, loop):
                yield with_keyword(unit, loop, name, "True")

    idea.__module__ = __name__
    return idea


def _around_another(unit: Unit, loop: Loop) -> bool:
    return len(unit.tree.find(loop.node, cst.For)) > 1


def _with_dot(unit: Unit, loop: Loop) -> bool:
    return bool(calls(unit, loop.node, "dot")) and not _around_another(unit, loop)


def _outer_with_dot(unit: Unit, loop: Loop) -> bool:
    return loop.depth == 0 and bool(calls(unit, loop.node, "dot"))


def _with_unchanging(unit: Unit, loop: Loop) -> bool:
    """Whether a line of the loop reads nothing that the loop writes."""
    changing = writes(unit, loop.node)
    return any(
        isinstance(line, cst.SimpleStatementLine) and writes(unit, line) and not reads(unit, line) & changing
        and not calls(unit, line, "load") and not effects(unit, line)
        for line in loop.body
    ) or bool(calls(unit, loop.node, "arange"))  # fmt: skip


flatten_loop = rewrite(
    "flatten_loop",
    needs="a loop around another",
    reason="one loop for both: the inner one's first loads overlap with the end of the outer iteration",
)(_attribute("flatten", _around_another))
warp_specialize = rewrite(
    "warp_specialize",
    needs="an outermost loop with a `tl.dot`",
    reason="some warps only load, others only compute; where the compiler can't, it is refused or unchanged",
)(_attribute("warp_specialize", _outer_with_dot))
disable_licm = rewrite(
    "disable_licm",
    needs="a loop that computes something again in each iteration",
    reason="what is not moved out of the loop holds no registers across it",
)(_attribute("disable_licm", _with_unchanging))
single_accumulator = rewrite(
    "single_accumulator",
    needs="an innermost loop with a `tl.dot`",
    reason="one accumulator buffer instead of two leaves room for larger tiles",
)(_attribute("disallow_acc_multi_buffer", _with_dot))


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


LOOPS = (
    pipeline_loop,
    unroll_loop,
    static_loop,
    flatten_loop,
    warp_specialize,
    disable_licm,
    single_accumulator,
    interchange,
    fuse_loops,
    split_loop,
    reverse_pass,
)
