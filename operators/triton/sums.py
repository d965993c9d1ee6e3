"""Rewrites of sums and maxima that a loop builds up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import accumulated, argument_of, assigned, called, name_nodes, reads, writes
from operators.triton.rewrite import rewrite
from operators.triton.shapes import shape_of, shapes
from operators.triton.structure import Loop, Unit
from operators.triton.syntax import Edits, squeeze

REDUCES = {"+": "sum", "max": "max"}


@rewrite(
    "vector_accumulator",
    needs="a loop with `a += tl.sum(e)` or `a = tl.maximum(a, tl.max(e))`; a starts as a literal",
    reason="the lanes are reduced once after the loop instead of across warps in every iteration",
)
def vector_accumulator(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The accumulator gets the shape of what was reduced."""
    for loop in unit.loops:
        for line, name, kind, value in _sums(unit, loop):
            start = _started(unit, loop, name)
            if start is None or not isinstance(value, cst.Call) or called(unit, value) != REDUCES[kind]:
                continue
            known = shapes(unit, loop.jit)
            shape = shape_of(unit, value.args[0].value, known)
            axis = argument_of(value, "axis", 1)
            if not shape or len(shape) > 2 or argument_of(value, "keep_dims") or known.get(name) is None:
                continue
            place = f", axis={unit.tree.text(axis.value)}" if axis else ""
            lanes = f"tl.full([{', '.join(shape)}], {_first_value(unit, start)}, tl.float32)"
            yield (
                unit.tree.swap(start.body[0], f"{name} = {lanes}"),
                unit.tree.swap(line.body[0], _summed(name, kind, unit.tree.text(value.args[0].value))),
                unit.tree.after(loop.node, f"{name} = {unit.tree.text(value.func)}({name}{place})\n"),
            )


def _sums(unit: Unit, loop: Loop) -> Iterator[tuple[cst.SimpleStatementLine, str, str, cst.BaseExpression]]:
    """The lines of a loop that add to a name which the loop does not use otherwise."""
    for line in loop.body:
        found = accumulated(unit, line)
        if found and isinstance(line, cst.SimpleStatementLine) and not _others(unit, loop, line, found[0]):
            yield line, *found


def _summed(name: str, kind: str, text: str) -> str:
    return f"{name} += {text}" if kind == "+" else f"{name} = tl.maximum({name}, {text})"


def _started(unit: Unit, loop: Loop, name: str) -> cst.SimpleStatementLine | None:
    """The line before a loop that gives a name its first value, a float literal or a tile of one.

    None where the name has other uses in between, or where the loop is in another one.
    """
    lines = [s for s in unit.tree.find(loop.jit.node, cst.SimpleStatementLine) if name in writes(unit, s)]
    before = [s for s in lines if unit.tree.start(s) < unit.tree.start(loop.node)]
    if len(before) != 1 or _first_value(unit, before[0]) is None or loop.node not in loop.jit.body:
        return None
    if before[0] not in loop.jit.body:
        return None
    i, j = loop.jit.body.index(before[0]), loop.jit.body.index(loop.node)
    return None if any(name in reads(unit, s) for s in loop.jit.body[i + 1 : j]) else before[0]


def _first_value(unit: Unit, line: cst.CSTNode) -> str | None:
    found = assigned(line)
    text = squeeze(unit.tree.text(found[1])) if found else ""
    if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?|-?float\([\"']-?inf[\"']\)", text):
        return text
    if re.fullmatch(r"tl\.zeros\([\[(].*[\])],(dtype=)?tl\.float32\)", text):
        return "0.0"
    full = re.fullmatch(r"tl\.full\([\[(].*[\])],(.*?),(dtype=)?tl\.float32\)", text)
    return full[1] if full else None


def _others(unit: Unit, loop: Loop, line: cst.CSTNode, name: str) -> bool:
    """Whether a loop uses a name beside one of its lines."""
    return any(name in reads(unit, s) | writes(unit, s) for s in loop.body if s is not line)


@rewrite(
    "scalar_accumulator",
    needs="a tile that a loop adds to and that is only reduced after it",
    reason="a sum per iteration frees the registers that the lanes' sums take",
)
def scalar_accumulator(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Each iteration reduces its own tile."""
    for loop in unit.loops:
        for line, name, kind, value in _sums(unit, loop):
            start, call = _started(unit, loop, name), _only_reduced(unit, loop, name, REDUCES[kind])
            shape = shapes(unit, loop.jit).get(name)
            if start is None or call is None or not shape or len(shape) > 1:
                continue
            reduced = f"{unit.tree.text(call.func)}({unit.tree.text(value)}, axis=0)"
            yield (
                unit.tree.swap(start.body[0], f"{name} = {_first_value(unit, start)}"),
                unit.tree.swap(line.body[0], _summed(name, kind, reduced)),
                unit.tree.swap(call, name),
            )


def _only_reduced(unit: Unit, loop: Loop, name: str, reduction: str) -> cst.Call | None:
    """The one reduction that uses a name after a loop."""
    uses = [n for n in name_nodes(unit, loop.jit.node, name) if unit.tree.start(n) > unit.tree.end(loop.node)]
    uses = [n for n in uses if not isinstance(next(unit.tree.above(n)), cst.AssignTarget)]
    if len(uses) != 1:
        return None
    call = next((node for node in unit.tree.above(uses[0]) if isinstance(node, cst.Call)), None)
    if call is None or called(unit, call) != reduction or call.args[0].value is not uses[0]:
        return None
    axis = argument_of(call, "axis", 1)
    keep = argument_of(call, "keep_dims")
    return call if keep is None and (axis is None or unit.tree.text(axis.value) == "0") else None


SUMS = (vector_accumulator, scalar_accumulator)
