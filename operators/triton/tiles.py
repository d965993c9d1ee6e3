"""Rewrites of which program does which tile: a few programs that stay, several tiles or rows in each."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import argument_of, assigned, calls, name_nodes, reads, writes
from operators.triton.grids import Grid, asks_for_programs, axes, one_launch, with_sizes
from operators.triton.knobs import argument, constexprs
from operators.triton.maths import added, grouped
from operators.triton.rewrite import rewrite
from operators.triton.shapes import REDUCTIONS, shapes
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import Edit, Edits, indented, squeeze


def _single_axis(unit: Unit, jit: Jit) -> Grid | None:
    """The grid of a kernel with one program axis, one launch and no early return."""
    grid = one_launch(unit, jit)
    if grid is None or len(grid.sizes) != 1 or set(axes(unit, jit)) != {0} or asks_for_programs(unit, jit):
        return None
    if any(isinstance(node, cst.Return | cst.While) for node in unit.tree.below(jit.node)):
        return None  # it leaves early, or waits for other programs
    text = unit.tree.text(jit.node)
    return None if "atomic" in text or "launch_cooperative_grid" in grid.launch.options else grid


def _number(grid: Grid, name: str) -> str:
    """What a launch passes for a new number."""
    return f'{grid.launch.star or "CONFIG"}["{name}"]'


def _body_in_loop(unit: Unit, jit: Jit, header: str, tile: str) -> Edit:
    """The whole body under a loop over tiles; parameters that it moves are copied first in each of them."""
    moved = sorted({p.name for p in jit.parameters} & {n for line in jit.body for n in writes(unit, line)})
    names = {name: unit.tree.fresh(f"{name}_tile") for name in moved}
    # Triton's interpreter counts with plain integers, which have no ``.to``.
    index = f"tl.cast({tile}, tl.int32)" if ".to(tl.int64)" in unit.tree.text(jit.node) else tile
    edits = [unit.tree.swap(call, index) for found in axes(unit, jit).values() for call in found]
    edits += [
        unit.tree.swap(node, names[node.value])
        for line in jit.body
        for node in name_nodes(unit, line)
        if node.value in names
    ]
    copies = "".join(f"{new} = {old}\n" for old, new in names.items())
    body = copies + unit.tree.block(jit.body, edits)
    start, end = unit.tree.lines(jit.body[0])[0], unit.tree.lines(jit.body[-1])[1]
    return Edit(start, end, indented(header + indented(body), unit.tree.indent(jit.body[0])))


@rewrite(
    "persistent",
    needs="a kernel with one program axis, launched at one place, without `return`",
    reason="programs that stay take one tile after the other: no start-up per tile and no ragged last wave",
)
def persistent(unit: Unit, brief: Brief) -> Iterator[Edits]:
    """As many programs as fill the device, or a few times that; the number is for the tuner."""
    cores = brief.cores if brief.cores >= 16 else 132
    for jit in unit.kernels:
        grid = _single_axis(unit, jit)
        if grid is None or "num_programs" in unit.tree.text(jit.node):
            continue
        tile, tiles, programs = (unit.tree.fresh(name) for name in ("tile", "tiles", "PROGRAMS"))
        knob = constexprs(unit, jit, {programs: (cores * 4, [cores * k for k in (1, 2, 4, 8)])})
        count = argument(unit, jit, tiles, lambda _, size=grid.sizes[0]: size, "")  # type: ignore[misc]
        if knob is None or count is None:
            continue
        header = f"for {tile} in tl.range(tl.program_id(0), {tiles}, {programs}):\n"
        size = f"min({grid.sizes[0]}, {_number(grid, programs)})"
        yield (*count, *knob, *with_sizes(unit, grid, [size]), _body_in_loop(unit, jit, header, tile))


@rewrite(
    "coarsen",
    needs="a kernel with one program axis, launched at one place, without `return`",
    reason="several tiles per program: fewer programs to start, and their loads overlap",
)
def coarsen(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Neighbouring tiles, or tiles a grid apart; how many is a number for the tuner."""
    for jit in unit.kernels:
        grid = _single_axis(unit, jit)
        if grid is None:
            continue
        tile, tiles, each = (unit.tree.fresh(name) for name in ("tile", "tiles", "TILES"))
        knob = constexprs(unit, jit, {each: (2, (1, 2, 4, 8))})
        count = argument(unit, jit, tiles, lambda _, size=grid.sizes[0]: size, "")  # type: ignore[misc]
        if knob is None or count is None:
            continue
        size = f"triton.cdiv({grid.sizes[0]}, {_number(grid, each)})"
        start = f"tl.program_id(0) * {each}"
        for header in (
            f"for {tile} in tl.range({start}, tl.minimum({start} + {each}, {tiles})):\n",
            f"for {tile} in tl.range(tl.program_id(0), {tiles}, tl.num_programs(0), "
            f"loop_unroll_factor={each}):\n",
        ):
            edits = (*count, *knob, *with_sizes(unit, grid, [size]))
            yield (*edits, _body_in_loop(unit, jit, header, tile))


@rewrite(
    "rows_per_program",
    needs="a kernel that gives each program one row: its index read once, lanes of one dimension, no product",
    reason="short rows share the start-up and the latency of one program",
)
def rows_per_program(unit: Unit, _: Brief) -> Iterator[Edits]:
    """A tile of rows by lanes; reductions keep their dimension, masks get the last rows' one."""
    for jit in unit.kernels:
        grid, found = _single_axis(unit, jit), axes(unit, jit)
        if grid is None or not _flat(unit, jit) or len(found[0]) != 1:
            continue
        rows, total = unit.tree.fresh("ROWS"), unit.tree.fresh("rows")
        inside = unit.tree.fresh("row_inside")
        line = next((s for s in jit.body if unit.tree.covers(s, found[0][0])), None)
        knob = constexprs(unit, jit, {rows: (2, (1, 2, 4, 8))})
        count = argument(unit, jit, total, lambda _, size=grid.sizes[0]: size, "")  # type: ignore[misc]
        bound = assigned(line) if line is not None else None
        if line is None or bound is None or knob is None or count is None:
            continue
        tall = _row_names(unit, jit, line)
        if tall is None:
            continue
        index = f"(tl.program_id(0) * {rows} + tl.arange(0, {rows}))[:, None]"
        edits = [unit.tree.swap(found[0][0], index)]
        edits.append(unit.tree.after(line, f"{inside} = {bound[0]} < {total}\n"))
        edits += _widened(unit, jit, rows, inside, tall)
        size = f"triton.cdiv({grid.sizes[0]}, {_number(grid, rows)})"
        yield (*count, *knob, *with_sizes(unit, grid, [size]), *edits)


def _flat(unit: Unit, jit: Jit) -> bool:
    """Whether a kernel has lanes of one dimension only, and nothing that would need a closer look."""
    text = unit.tree.text(jit.node)
    if re.search(
        r"\btl\.(dot|trans|reshape|view|join|split|atomic|inline_asm|make_|associative|sort|cum|flip|gather|softmax|topk|hist)",
        text,
    ):
        return False
    if any(isinstance(node, cst.If | cst.While) for node in unit.tree.below(jit.node)):
        return False
    if "None]" in squeeze(text) or "[None" in squeeze(text):
        return False
    own = {other.name for other in unit.jits}
    if any(n.value in own for line in jit.body for n in name_nodes(unit, line)):
        return False
    known = shapes(unit, jit)
    return all(shape is not None and len(shape) <= 1 for shape in known.values())


def _row_names(unit: Unit, jit: Jit, line: cst.CSTNode) -> frozenset[str] | None:
    """Names that depend on the row; None where a loop's limits do."""
    found = set(writes(unit, line))
    lines = unit.tree.find(jit.node, cst.SimpleStatementLine)
    for _ in lines:
        for other in lines:
            if reads(unit, other) & found:
                found |= writes(unit, other)
    loops = [loop for loop in unit.loops if loop.jit is jit]
    return None if any(reads(unit, loop.call) & found for loop in loops) else frozenset(found)


def _widened(unit: Unit, jit: Jit, rows: str, inside: str, tall: frozenset[str]) -> list[Edit]:
    """Edits that give lanes, reductions, first values and masks their second dimension."""
    edits = []
    for call in calls(unit, jit.node, "arange"):
        at = unit.tree.end(call)
        edits.append(Edit(at, at, "[None, :]"))
    for call in calls(unit, jit.node, *REDUCTIONS):
        axis = argument_of(call, "axis", 1)
        if axis is None:
            edits += [added(unit, call, "axis", "1, keep_dims=True")]
        else:
            edits.append(unit.tree.swap(axis.value, "1" if axis.keyword else "axis=1"))
            edits.append(added(unit, call, "keep_dims", "True"))
    for line in unit.tree.find(jit.node, cst.SimpleStatementLine):
        bound = assigned(line)
        if bound is not None and bound[0] in tall and not reads(unit, line) & tall and jit.body.count(line):
            edits += _first_value(unit, bound[1], rows)
    for call in calls(unit, jit.node, "load", "store"):
        if not reads(unit, call.args[0]) & tall:
            continue
        mask = argument_of(call, "mask", 1 if call in calls(unit, call, "load") else 2)
        if mask is None:
            edits.append(added(unit, call, "mask", inside))
        else:
            edits.append(unit.tree.swap(mask.value, f"{grouped(unit.tree.text(mask.value))} & {inside}"))
    return edits


def _first_value(unit: Unit, value: cst.BaseExpression, rows: str) -> list[Edit]:
    """Edits that give a literal, or a tile of one value, a row for each row."""
    text = squeeze(unit.tree.text(value))
    if re.fullmatch(r"-?\d+\.\d*|-?float\([\"']-?inf[\"']\)", text):
        return [unit.tree.swap(value, f"tl.full([{rows}, 1], {text}, tl.float32)")]
    if isinstance(value, cst.Call) and value.args and re.match(r"tl\.(zeros|full)\(", text):
        shape = value.args[0].value
        if isinstance(shape, cst.Tuple | cst.List) and len(shape.elements) == 1:
            return [unit.tree.swap(shape, f"[{rows}, {unit.tree.text(shape.elements[0].value)}]")]
    return []


TILES = (persistent, coarsen, rows_per_program)
