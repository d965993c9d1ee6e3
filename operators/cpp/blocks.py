"""Rewrites that cut a loop into blocks: for a cache, for registers, for several accumulators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.clauses import Directive
from operators.cpp.dependence import Reduction, follow_together, free_order, reductions
from operators.cpp.effects import effects
from operators.cpp.loops import loose
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import types_in
from operators.cpp.structure import Loop, declared_name
from operators.cpp.syntax import Edits, Unit, braced, replace_loop
from operators.proposal import Brief

TILES = (256, 512, 1024, 2048, 4096)


@rewrite(
    "tile",
    needs="a loop that counts by one and is not collapsed",
    reason="a block of the row stays in the first-level cache, or is one thread's share",
)
def tile(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Cuts a loop into blocks; ``parallel for`` goes to the blocks, ``simd`` to the elements."""
    for loop in unit.loops:
        if not loop.unit_step or not _worth_blocks(loop) or "collapse" in loop.omp or not loose(loop):
            continue
        if not loop.straight:
            continue
        name, knob = (
            unit.knob("TILE", 1024, TILES) if loop.innermost else unit.knob("GROUP", 8, (2, 4, 8, 16, 32))
        )
        yield knob, replace_loop(loop, strip(unit, loop, name, loop.inner_text))


@rewrite(
    "tile_and_swap",
    needs="a loop around just one other, iterations of both in any order, limits apart from each other",
    reason="what the outer iterations share is still in cache when the next of them comes",
)
def tile_and_swap(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Cuts the inner loop into blocks and puts the walk over the blocks outside."""
    for outer in unit.loops:
        inner = [loop for loop in unit.children_of(outer) if loop.node in outer.statements]
        if (
            len(inner) != 1
            or outer.pragmas
            or not loose(outer)
            or not inner[0].unit_step
            or not inner[0].straight
        ):
            continue
        loop, rest = inner[0], [s for s in outer.statements if s.kind not in ("declaration", "preproc_call")]
        head = [s for s in outer.statements if s.kind == "declaration"]
        declared = effects(unit, outer.function, *head).declared | {outer.var}
        if rest != [loop.node] or any(
            re.search(rf"\b{name}\b", f"{loop.first} {loop.bound}") for name in declared
        ):
            continue
        if not free_order(unit, outer) or not free_order(unit, loop) or loop.parallel:
            continue
        name, knob = unit.knob("TILE", 1024, TILES)
        block, end = unit.fresh("block"), unit.fresh("block_end")
        header, limit = _blocks(loop, block, end, name)
        nest = outer.node.text[: loop.node.start - outer.node.start] + loop.header(block, end)
        nest += outer.node.text[loop.body.start - outer.node.start - 1 :]
        yield knob, replace_loop(outer, f"{header} {{\n{limit}\n{nest}\n}}")


@rewrite(
    "accumulators",
    needs="a loop that reduces into one scalar by +, max or min; other effects stay in their iteration",
    reason="several sums at once hide the latency of each addition and fill vectors",
)
def accumulators(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Splits an accumulator into lanes that are combined after the loop."""
    for loop in unit.loops:
        found = [r for r in reductions(unit, loop) or () if r.op != "*"]
        if len(found) != 1 or not loop.innermost or not loop.unit_step or loop.parallel or not loose(loop):
            continue
        body = effects(unit, loop.function, loop.body)
        ctype = types_in(unit, loop.function).get(found[0].name)
        if (
            ctype not in ("float", "double", "int", "int32_t", "int64_t")
            or not body.simple
            or len(body.writes) != 1
        ):
            continue
        if not follow_together(body, body, loop.var) or loop.bound in ("2", "3", "4"):
            continue
        name, knob = unit.knob("LANES", 32, (16, 32, 64, 128))
        yield knob, replace_loop(loop, _in_lanes(unit, loop, found[0], ctype, name))


def _in_lanes(unit: Unit, loop: Loop, reduction: Reduction, ctype: str, lanes: str) -> str:
    parts, lane, at = unit.fresh("parts"), unit.fresh("lane"), unit.fresh("at")
    neutral = reduction.name if reduction.op != "+" else "0"
    element = loop.body.with_names({reduction.name: f"{parts}[{lane}]", loop.var: f"({at} + {lane})"})
    element = element if element.startswith("{") else braced(element)
    each = f"for (int {lane} = 0; {lane} < {lanes}; ++{lane})"
    combined = (
        f"{reduction.name} += {parts}[{lane}];"  # also where the loop subtracts: its parts are negative
    )
    if reduction.op != "+":
        combined = reduction.with_value(reduction.name, f"{parts}[{lane}]")
    return f"""
{ctype} {parts}[{lanes}];
{each} {parts}[{lane}] = {neutral};
{loop.ctype} {at} = {loop.first};
for (; {at} + {lanes} <= {loop.bound}; {at} += {lanes}) {{
#pragma omp simd
{each} {element}
}}
{loop.header(at)} {loop.body.text}
{each} {{
{combined}
}}"""


@rewrite(
    "row_block",
    needs="a loop in any order around declarations and loops whose limits it does not change",
    reason="several rows at once share each load of what does not depend on the row, and hide latency",
)
def row_block(unit: Unit, _brief: Brief) -> Iterator[Edits]:
    """Unroll and jam: the inner loops run for two or four outer iterations at a time."""
    for outer in unit.loops:
        if outer.innermost or not outer.unit_step or not loose(outer) or "collapse" in outer.omp:
            continue
        if not free_order(unit, outer) or not outer.straight or reductions(unit, outer) is None:
            continue
        if any(True for _ in outer.body.find("continue_statement")):
            continue
        for rows in (2, 4):
            jam = _jammed(unit, outer, rows)
            if jam is not None:
                yield (replace_loop(outer, jam),)


def _jammed(unit: Unit, outer: Loop, rows: int) -> str | None:
    start = unit.fresh(f"{outer.var}_block")
    names = [{outer.var: f"({start} + {k})" if k else start} for k in range(rows)]
    lines: list[str] = []
    for node in outer.statements:
        inner = unit.loop_at(node)
        if node.kind == "preproc_call":
            continue
        if node.kind == "declaration":
            declarators = [child for child in node.children if child.field == "declarator"]
            for name in map(declared_name, declarators):
                for k in range(rows):
                    names[k][name] = unit.fresh(f"{name}_{k}")
            lines += [node.with_names(names[k]) for k in range(rows)]
        elif inner is not None and (text := _jammed_loop(unit, inner, names)) is not None:
            lines.append(text)
        elif node.kind == "expression_statement":
            lines += [node.with_names(names[k]) for k in range(rows)]
        else:
            return None
    if not any(unit.loop_at(node) for node in outer.statements):
        return None
    pragma = f"#pragma omp {outer.omp}\n" if outer.omp else ""
    blocks = f"for ({outer.ctype} {start} = {outer.first}; {start} < {outer.bound}; {start} += {rows})"
    single = f"{outer.header(start)} {outer.body.text}"
    whole = f"if ({start} + {rows} <= {outer.bound}) " + braced("\n".join(lines))
    return f"{pragma}{blocks} {{\n{whole} else {braced(single)}\n}}"


def _jammed_loop(unit: Unit, inner: Loop, names: list[dict[str, str]]) -> str | None:
    """An inner loop that does the work of all rows, with their reductions in its directive."""
    body = effects(unit, inner.function, inner.body)
    limits = f"{inner.first} {inner.bound} {inner.step}"
    if any(re.search(rf"\b{name}\b", limits) for name in names[0]) or body.declared & set(names[0]):
        return None
    if not body.simple or not inner.innermost or inner.parallel or len(inner.pragmas) > bool(inner.omp):
        return None
    bodies = []
    for row in names:
        text = inner.body.with_names(row)
        alone = text[1:-1].strip() if text.startswith("{") else text
        bodies.append(braced(alone) if body.declared else alone)
    directive = Directive.of(inner.omp).without("reduction")
    for name, argument in Directive.of(inner.omp).clauses:
        if name == "reduction":
            op, scalars = argument.split(":")
            all_rows = [
                row.get(scalar.strip(), scalar.strip()) for scalar in scalars.split(",") for row in names
            ]
            directive = directive.plus(name, f"{op.strip()} : {', '.join(dict.fromkeys(all_rows))}")
    pragma = f"#pragma omp {directive}\n" if inner.omp else ""
    return f"{pragma}{inner.header()} {braced(chr(10).join(bodies))}"


def strip(unit: Unit, loop: Loop, size: str, body: str) -> str:
    """A loop cut into blocks of ``size``."""
    block, end = unit.fresh(f"{loop.var}_block"), unit.fresh(f"{loop.var}_end")
    directive = Directive.of(loop.omp)
    outer = tuple(word for word in directive.words if word != "simd")
    around = directive.without("simdlen", "aligned", "safelen", "linear").only(*outer)
    inside = Directive(
        ("simd",), tuple(part for part in directive.clauses if part[0] not in ("schedule", "if", "proc_bind"))
    )
    others = [pragma.text.strip() for pragma in loop.pragmas if not loop.omp]
    header, limit = _blocks(loop, block, end, size)
    pragmas = [f"#pragma omp {inside}"] if "simd" in directive.words else others
    lines = [f"#pragma omp {around}"] if outer else []
    lines += [f"{header} {{", limit, *pragmas, f"{loop.header(block, end)} {braced(body)}", "}"]
    return "\n".join(lines)


def _blocks(loop: Loop, block: str, end: str, size: str) -> tuple[str, str]:
    header = f"for ({loop.ctype} {block} = {loop.first}; {block} < {loop.bound}; {block} += {size})"
    return header, block_limit(loop, block, end, size)


def block_limit(loop: Loop, block: str, end: str, size: str) -> str:
    """Where a block ends: the declaration of ``end``."""
    return f"const {loop.ctype} {end} = {block} + {size} < {loop.bound} ? {block} + {size} : {loop.bound};"


def _worth_blocks(loop: Loop) -> bool:
    """Whether the loop may be long: its bound is not a number, nor itself the end of a block."""
    return not loop.bound.isdigit() and not re.search(r"_end\b|_end_\d+$", loop.bound)


BLOCKS = (tile, tile_and_swap, accumulators, row_block)
