"""Rewrites of loops: how they are pipelined, unrolled and compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import calls, effects, reads, writes
from operators.triton.knobs import Knobs, constexprs
from operators.triton.rewrite import rewrite
from operators.triton.structure import Loop, Unit
from operators.triton.syntax import Edit, Edits


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


LOOPS = (
    pipeline_loop,
    unroll_loop,
    static_loop,
    flatten_loop,
    warp_specialize,
    disable_licm,
    single_accumulator,
)
