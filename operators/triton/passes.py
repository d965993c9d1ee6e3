"""Rewrites that change how often a kernel goes over its row."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import accumulated, argument_of, called, effects, reads, writes
from operators.triton.nests import neighbours
from operators.triton.rewrite import rewrite
from operators.triton.structure import Loop, Unit
from operators.triton.syntax import Edits, squeeze


@rewrite(
    "online_softmax",
    needs="a loop with `m = tl.maximum(m, tl.max(x))`, then one that sums `tl.exp(x - m)`, loading alike",
    reason="maximum and sum come out of one pass: the row is read twice instead of three times",
)
def online_softmax(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The sum so far is scaled whenever the maximum grows."""
    for one, other, between in neighbours(unit):
        top, total = _last(unit, one, "max"), _last(unit, other, "+")
        if top is None or total is None or effects(unit, one.node) or effects(unit, other.node):
            continue
        if one.var != other.var or any(top[0] in reads(unit, s) | writes(unit, s) for s in between):
            continue
        exponential = _exponential(unit, total[1], top[0])
        prelude = [squeeze(unit.tree.block([line])) for line in one.body[:-1]]
        if exponential is None or prelude != [squeeze(unit.tree.block([s])) for s in other.body[:-1]]:
            continue
        if any({top[0], total[0]} & (reads(unit, line) | writes(unit, line)) for line in other.body[:-1]):
            continue
        lines = _merged(unit, top, total, exponential)
        yield (
            unit.tree.drop(one.node),
            unit.tree.before(other.body[-1], lines),
            unit.tree.drop(other.body[-1]),
        )


def _last(unit: Unit, loop: Loop, kind: str) -> tuple[str, cst.Call] | None:
    """Name and reduction of a loop's last line, which builds up a scalar of one kind."""
    found = accumulated(unit, loop.body[-1])
    if found is None or found[1] != kind or not isinstance(found[2], cst.Call):
        return None
    reduction = {"max": "max", "+": "sum"}[kind]
    axis, keep = argument_of(found[2], "axis", 1), argument_of(found[2], "keep_dims")
    flat = axis is None or unit.tree.text(axis.value) == "0"
    return (found[0], found[2]) if called(unit, found[2]) == reduction and flat and keep is None else None


def _exponential(unit: Unit, total: cst.Call, top: str) -> cst.Call | None:
    """The ``tl.exp(x - m)`` that is summed; m stands nowhere else in the sum."""
    found = [
        call
        for call in unit.tree.find(total, cst.Call)
        if called(unit, call) in ("exp", "exp2") and top in reads(unit, call)
    ]
    text = squeeze(unit.tree.text(found[0].args[0].value)) if len(found) == 1 else ""
    alone = len(re.findall(rf"\b{top}\b", unit.tree.text(total))) == 1
    fits = re.fullmatch(rf"(.+-{top}|\(.+-{top}\)\*[\w.]+)", text)
    return found[0] if fits and alone else None


def _merged(unit: Unit, top: tuple[str, cst.Call], total: tuple[str, cst.Call], exp: cst.Call) -> str:
    """The lines that move the maximum and scale the sum; rows of -inf so far are measured from zero."""
    m, s = top[0], total[0]
    larger, origin = unit.tree.fresh(f"larger_{m}"), unit.tree.fresh("origin")
    reduced, summed = unit.tree.text(top[1]), unit.tree.text(total[1])
    argument, function = unit.tree.text(exp.args[0].value), unit.tree.text(exp.func)
    moved = re.sub(rf"\b{m}\b", origin, argument)
    factor = re.fullmatch(r"\(.+\)\s*(\*\s*[\w.]+)", argument)
    scale = f"({m} - {origin}) {factor[1]}" if factor else f"{m} - {origin}"
    text = summed.replace(argument, moved, 1)
    return (
        f"{larger} = tl.maximum({m}, {reduced})\n"
        f'{origin} = tl.where({larger} == float("-inf"), 0.0, {larger})\n'
        f"{s} = {s} * {function}({scale}) + {text}\n"
        f"{m} = {larger}\n"
    )


PASSES = (online_softmax,)
