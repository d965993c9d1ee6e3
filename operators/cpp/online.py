"""Maximum and sum of exponentials in one pass over a row, as for a softmax or a logsumexp."""

from __future__ import annotations

from collections.abc import Iterator

from operators.cpp.blocks import block_limit
from operators.cpp.clauses import Directive
from operators.cpp.dependence import Reduction, reductions
from operators.cpp.effects import effects
from operators.cpp.loops import loose, next_loop
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import is_exponential, types_in
from operators.cpp.structure import Loop
from operators.cpp.syntax import Edit, Edits, Unit, braced, reindent
from operators.proposal import Brief


@rewrite(
    "online",
    needs="a loop that finds a maximum, and after it one over the same range that sums exp(value - max)",
    reason="block by block, the maximum and the sum see the row once while it is in the first-level cache",
)
def online(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Maximum and sum in one pass over blocks; the sum is rescaled where a block raises the maximum."""
    for first in unit.loops:
        second, between = next_loop(unit, first)
        if second is None or first.same_range != second.same_range or not first.unit_step or not loose(first):
            continue
        tops, sums = reductions(unit, first) or (), reductions(unit, second) or ()
        if len(tops) != 1 or len(sums) != 1 or tops[0].op != "max" or tops[0].keeps_nan or sums[0].op != "+":
            continue
        top, total = tops[0].name, sums[0].name
        one, two = (effects(unit, loop.function, loop.body) for loop in (first, second))
        gap = effects(unit, first.function, *between)
        if (
            not _sums_below(second, sums[0], top)
            or not one.simple
            or not two.simple
            or one.stores
            or two.stores
        ):
            continue
        if (
            gap.opaque
            or gap.reads & one.writes
            or gap.writes
            or gap.stores
            or first.parallel
            or second.parallel
        ):
            continue
        if types_in(unit, first.function).get(top) not in ("float", "double"):
            continue
        name, knob = unit.knob("ONLINE_BLOCK", 2048, (512, 1024, 2048, 4096, 8192))
        block, end, before = unit.fresh("block"), unit.fresh("block_end"), unit.fresh("before")
        exp = next(
            call.part("function").text for call in second.body.find("call_expression") if is_exponential(call)
        )
        passes = [f"{_pragmas(loop)}{loop.header(block, end)} {_block_of(loop)}" for loop in (first, second)]
        lines = [
            *(node.text for node in between),
            f"for ({first.ctype} {block} = {first.first}; {block} < {first.bound}; {block} += {name}) {{",
            block_limit(first, block, end, name),
            f"const auto {before} = {top};",
            passes[0],
            f"if ({top} == -INFINITY) continue;",
            f"if ({top} != {before}) {total} *= {exp}({before} - {top});",
            passes[1],
            "}",
        ]
        text = reindent("\n".join(lines), first.indent)
        yield *unit.include("cmath"), knob, Edit(first.start, second.end, text)


def _sums_below(loop: Loop, total: Reduction, top: str) -> bool:
    """Whether each summand is ``exp(value - top)`` and nothing else in the loop reads ``top``."""
    call = total.value
    if call.kind == "identifier":
        made = [d for d in loop.body.find("init_declarator") if d.part("declarator").text == call.text]
        call = made[0].part("value") if len(made) == 1 else call
    if call.kind != "call_expression" or not is_exponential(call):
        return False
    argument = call.part("arguments").named_children[0]
    while argument.kind == "parenthesized_expression":
        argument = argument.named_children[0]
    below = argument.kind == "binary_expression" and argument.part("operator").text == "-"
    uses = [n for n in loop.body.find("identifier") if n.text == top]
    return below and argument.part("right").text == top and len(uses) == 1


def _pragmas(loop: Loop) -> str:
    return f"#pragma omp {Directive.of(loop.omp)}\n" if loop.omp else ""


def _block_of(loop: Loop) -> str:
    return loop.body.text if loop.body.kind == "compound_statement" else braced(loop.body.text)


ONLINE = (online,)
