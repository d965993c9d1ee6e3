"""Rewrites of how kernels are launched: grids, launch options, where programs start."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import assigned, calls, depends_on, name_nodes, reads, writes
from operators.triton.grids import asks_for_programs, axes, grid_of, one_launch, with_sizes
from operators.triton.knobs import constexprs, numbers, options
from operators.triton.rewrite import rewrite
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import Edits

# First values differ from Triton's own defaults: an equal plan would be a duplicate.
OPTIONS = {
    "num_warps": (8, (1, 2, 4, 8, 16)),
    "num_stages": (4, (1, 2, 3, 4, 5)),
    "maxnreg": (128, (64, 96, 128, 168, 255)),
}


@rewrite(
    "launch_numbers",
    needs="a launch that gives no num_warps, no num_stages (with a `tl.dot` in a loop) or no maxnreg",
    reason="the tuner may trade occupancy against registers and loads in flight",
)
def launch_numbers(unit: Unit, _: Brief) -> Iterator[Edits]:
    """One option at a time, at another value than Triton's own."""
    multiplying = {loop.jit for loop in unit.loops if calls(unit, loop.node, "dot")}
    for name, (value, allowed) in OPTIONS.items():
        wanting = [
            launch
            for launch in unit.launches
            if launch.clear
            and name not in launch.options
            and not (launch.config and name in unit.config)
            and (name != "num_stages" or launch.kernel in multiplying)
        ]
        if not wanting or name in unit.config or (name, unit.config.get("num_warps")) == ("maxnreg", "32"):
            continue  # 32 warps have 64 registers a thread, whatever is asked for
        wide = name == "maxnreg" and any(launch.kernel in multiplying for launch in wanting)
        yield options(unit, wanting, {name: (168 if wide else value, allowed)})


@rewrite(
    "free_number",
    needs="a literal power of two for a compile-time parameter or num_warps: in the launch, or named once",
    reason="a number that was fixed by hand becomes one that the tuner moves",
)
def free_number(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The literal moves into CONFIG, its neighbours into SPACE; it begins one step up: another plan."""
    for launch in unit.launches:
        if any(other.config for other in unit.launches):
            return
        passed = launch.options | launch.given
        for name, node in passed.items():
            parameter = launch.kernel.parameter(name)
            if name in unit.config or not (parameter.constexpr if parameter else name == "num_warps"):
                continue
            place = _number(unit, launch.host, node)
            if place is None:
                continue
            value = int(unit.tree.text(place))
            allowed = [v for v in (value // 4, value // 2, value, value * 2, value * 4) if v >= 1]
            if name == "num_warps":
                allowed = [v for v in allowed if v <= 32]
            first = min(2 * value, allowed[-1])
            yield (*numbers(unit, {name: (first, allowed)}), unit.tree.swap(place, f'CONFIG["{name}"]'))


def _number(unit: Unit, host: cst.FunctionDef, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The literal behind an argument: the argument itself, or the one value of a name of the host's."""
    if isinstance(node, cst.Integer):
        return node if _is_power(node) else None
    if not isinstance(node, cst.Name):
        return None
    found = [
        value
        for line in unit.tree.find(unit.tree.module, cst.SimpleStatementLine)
        if (bound := assigned(line)) and bound[0] == node.value and (value := bound[1])
        and (line in unit.tree.module.body or unit.tree.covers(host, line))
    ]  # fmt: skip
    if len(found) != 1 or _used_in_kernels(unit, node.value):
        return None
    value = found[0]
    return value if isinstance(value, cst.Integer) and _is_power(value) else None


def _used_in_kernels(unit: Unit, name: str) -> bool:
    return any(not jit.parameter(name) and name_nodes(unit, jit.node, name) for jit in unit.jits)


def _is_power(node: cst.Integer) -> bool:
    return node.evaluated_value > 0 and node.evaluated_value & (node.evaluated_value - 1) == 0


@rewrite(
    "tuple_grid",
    needs="a grid that is a function of the compile-time parameters",
    reason="a tuple is known before the launch; nothing has to be called to find it",
)
def tuple_grid(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Each use of META becomes what the launch passes."""
    for launch in unit.launches:
        grid = grid_of(unit, launch)
        if grid is not None and grid.meta and launch.clear:
            yield with_sizes(unit, grid, grid.sizes)


@rewrite(
    "permute_axes",
    needs="a kernel with two program axes, launched at one place with a tuple",
    reason="programs that run side by side share other data in the second-level cache",
)
def permute_axes(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Two axes change places, in the kernel and in the grid."""
    for jit in unit.kernels:
        grid, found = one_launch(unit, jit), axes(unit, jit)
        if grid is None or -1 in found or asks_for_programs(unit, jit):
            continue
        for one, other in ((0, 1), (1, 2), (0, 2)):
            if other >= len(grid.sizes) or not (one in found or other in found):
                continue
            sizes = list(grid.sizes)
            sizes[one], sizes[other] = sizes[other], sizes[one]
            swaps = [
                unit.tree.swap(call.args[0].value, str(new))
                for old, new in ((one, other), (other, one))
                for call in found.get(old, [])
            ]
            yield (*swaps, *with_sizes(unit, grid, sizes))


@rewrite(
    "group_swizzle",
    needs="a kernel of two program axes, each read once into a name",
    reason="neighbouring programs share rows and columns of tiles, which then stay in the second-level cache",
)
def group_swizzle(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Tiles go in groups of some rows; how many is a number for the tuner."""
    for jit in unit.kernels:
        found, grid = axes(unit, jit), one_launch(unit, jit)
        if grid is None or len(grid.sizes) != 2 or calls(unit, jit.node, "swizzle2d"):
            continue
        names = {axis: named_index(unit, jit, calls_) for axis, calls_ in found.items()}
        if set(names) != {0, 1} or None in names.values():
            continue
        lines = [names[0], names[1]]
        (first, line0), (second, line1) = (pair for pair in lines if pair is not None)
        if line0 not in jit.body or line1 not in jit.body:
            continue
        last = max(line0, line1, key=lambda line: unit.tree.start(line))
        between = jit.body[: jit.body.index(last)]
        if any({first, second} & reads(unit, line) for line in between):
            continue
        knob = unit.tree.fresh("GROUP")
        added = constexprs(unit, jit, {knob: (8, (2, 4, 8, 16))})
        if added is not None:
            swizzle = f"tl.swizzle2d({second}, {first}, tl.num_programs(1), tl.num_programs(0), {knob})"
            yield (*added, unit.tree.after(last, f"{second}, {first} = {swizzle}\n"))


def named_index(unit: Unit, jit: Jit, found: list[cst.Call]) -> tuple[str, cst.CSTNode] | None:
    """The name that one read of a program index gets, once, and the line that gives it."""
    if len(found) != 1:
        return None
    for line in jit.body:
        bound = assigned(line)
        if bound and bound[1] is found[0]:
            written = [other for other in jit.body if bound[0] in writes(unit, other)]
            return (bound[0], line) if written == [line] else None
    return None


@rewrite(
    "reverse_programs",
    needs="a kernel with a loop whose limits depend on the program's index",
    reason="the programs with most work start first, so that none of them is left running alone at the end",
)
def reverse_programs(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Each read of that axis counts from its far end."""
    for jit in unit.kernels:
        found = axes(unit, jit)
        loops = [loop for loop in unit.loops if loop.jit is jit]
        for axis, sites in found.items():
            if axis < 0 or "num_programs" in unit.tree.text(jit.node):
                continue
            names = {
                name
                for line in unit.tree.find(jit.node, cst.SimpleStatementLine)
                if any(unit.tree.covers(line, call) for call in sites)
                for name in writes(unit, line)
            }
            limits = [depends_on(unit, jit, reads(unit, loop.call)) for loop in loops]
            inline = any(unit.tree.covers(loop.call, call) for loop in loops for call in sites)
            if inline or any(names & limit for limit in limits):
                text = f"(tl.num_programs({axis}) - 1 - tl.program_id({axis}))"
                yield tuple(unit.tree.swap(call, text) for call in sites)


LAUNCHES = (launch_numbers, free_number, tuple_grid, permute_axes, group_swizzle, reverse_programs)
