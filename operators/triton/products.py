"""Rewrites of matrix products."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import accumulated, argument_of, assigned, called, calls
from operators.triton.maths import added
from operators.triton.rewrite import rewrite
from operators.triton.structure import Unit
from operators.triton.syntax import Edit, Edits


@rewrite(
    "dot_precision",
    needs="a `tl.dot` whose operands are not cast to 16 bits on the spot",
    reason="float32 products on the tensor cores, in one or several passes, trade accuracy for speed",
)
def dot_precision(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Each of the other precisions, from the most to the least accurate."""
    for jit in unit.jits:
        for call in calls(unit, jit.node, "dot"):
            if re.search(r"\b(b?float16|fp16|bf16|int8)\b", unit.tree.text(call)):
                continue
            given = argument_of(call, "input_precision")
            for precision in ("ieee", "tf32x3", "tf32"):
                if given is None:
                    yield (added(unit, call, "input_precision", f'"{precision}"'),)
                elif f'"{precision}"' != unit.tree.text(given.value).replace("'", '"'):
                    yield (unit.tree.swap(given.value, f'"{precision}"'),)


@rewrite(
    "dot_accumulate",
    needs="`acc += tl.dot(a, b)` or `acc = tl.dot(a, b, acc)`",
    reason="the tensor core adds in place, or the sum is promoted after each tile: fewer moves or less error",
)
def dot_accumulate(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The one form for the other."""
    for jit in unit.jits:
        for line in unit.tree.find(jit.node, cst.SimpleStatementLine):
            if (sum_ := accumulated(unit, line)) and sum_[1] == "+":
                yield from _into_dot(unit, line, sum_[0], sum_[2])
            elif plain := assigned(line):
                yield from _out_of_dot(unit, line, *plain)


def _into_dot(
    unit: Unit, line: cst.SimpleStatementLine, name: str, dot: cst.BaseExpression
) -> Iterator[Edits]:
    if not isinstance(dot, cst.Call) or called(unit, dot) != "dot" or len(dot.args) < 2:
        return
    if argument_of(dot, "acc", 2) is None and argument_of(dot, "out_dtype") is None:
        start, at, end = unit.tree.start(dot), unit.tree.end(dot.args[1].value), unit.tree.end(dot)
        head, tail = unit.tree.data[start:at].decode(), unit.tree.data[at:end].decode()
        yield (unit.tree.swap(line.body[0], f"{name} = {head}, {name}{tail}"),)


def _out_of_dot(
    unit: Unit, line: cst.SimpleStatementLine, name: str, dot: cst.BaseExpression
) -> Iterator[Edits]:
    if not isinstance(dot, cst.Call) or called(unit, dot) != "dot" or len(dot.args) < 3:
        return
    given = argument_of(dot, "acc", 2)
    if given is not None and unit.tree.text(given.value) == name:
        before = dot.args[dot.args.index(given) - 1]
        cut = Edit(unit.tree.end(before.value), unit.tree.end(given.value), "")
        yield (Edit(unit.tree.start(line.body[0]), unit.tree.start(dot), f"{name} += "), cut)


PRODUCTS = (dot_precision, dot_accumulate)
