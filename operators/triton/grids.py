"""A launch's grid: its sizes as texts that hold in the host function, and how to put other sizes there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from operators.triton.flow import called, calls, name_nodes
from operators.triton.structure import Jit, Launch, Unit
from operators.triton.syntax import Edits, squeeze


@dataclass(frozen=True, eq=False)
class Grid:
    """The grid of one launch.

    Attributes:
        sizes: one text per axis.
        meta: whether it is written as a function of the compile-time parameters.
    """

    launch: Launch
    sizes: tuple[str, ...]
    meta: bool


def grid_of(unit: Unit, launch: Launch) -> Grid | None:
    """The grid; None where it is no tuple, nor a function that returns one."""
    node = unit.host_value(launch, launch.grid)
    parameter = None
    if isinstance(node, cst.Lambda):
        if len(node.params.params) != 1:
            return None
        parameter, node = node.params.params[0].name.value, node.body
    if not isinstance(node, cst.Tuple) or not 1 <= len(node.elements) <= 3:
        return None
    sizes = []
    for element in node.elements:
        text = unit.tree.text(element.value)
        if parameter is not None:
            for name in re.findall(rf"\b{parameter}\[[\"'](\w+)[\"']\]", text):
                value = unit.value(launch, name)
                if value is None:
                    return None
                text = re.sub(rf"\b{parameter}\[[\"']{name}[\"']\]", lambda _, v=value: v, text)  # type: ignore[misc]
            if re.search(rf"\b{parameter}\b", text):
                return None
        sizes.append(text)
    return Grid(launch, tuple(sizes), parameter is not None)


def with_sizes(unit: Unit, grid: Grid, sizes: Sequence[str]) -> Edits:
    """Edits that put a plain tuple into the launch; a name that held the old grid goes with its last use."""
    text = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
    node = grid.launch.grid
    found = [unit.tree.swap(node, text)]
    if isinstance(node, cst.Name) and len(name_nodes(unit, grid.launch.host, node.value)) == 2:
        line = next(
            (
                holder
                for name, assign in unit.host_names(grid.launch)
                if name == node.value
                for holder in unit.tree.above(assign)
                if isinstance(holder, cst.SimpleStatementLine)
            ),
            None,
        )
        if line is not None and len(line.body) == 1:
            found.append(unit.tree.drop(line))
    return tuple(found)


def axes(unit: Unit, jit: Jit) -> dict[int, list[cst.Call]]:
    """The calls of ``tl.program_id`` by axis; an axis that is no literal stands as -1."""
    found: dict[int, list[cst.Call]] = {}
    for call in calls(unit, jit.node, "program_id"):
        text = squeeze(unit.tree.text(call.args[0].value)) if call.args else ""
        found.setdefault(int(text) if text in ("0", "1", "2") else -1, []).append(call)
    return found


def one_launch(unit: Unit, jit: Jit) -> Grid | None:
    """The grid of a kernel that is launched at one place only."""
    launches = unit.launches_of(jit)
    return grid_of(unit, launches[0]) if len(launches) == 1 else None


def asks_for_programs(unit: Unit, jit: Jit) -> bool:
    """Whether a kernel, or what it calls, looks at the grid beside its own ``tl.program_id``."""
    own = {other.name: other for other in unit.jits if other is not jit}
    if calls(unit, jit.node, "num_programs"):
        return True
    used = [own[n.value] for n in name_nodes(unit, jit.node) if n.value in own]
    return any(calls(unit, helper.node, "num_programs", "program_id") for helper in used)


def whole_number(unit: Unit, launch: Launch, node: cst.BaseExpression) -> bool:
    """Whether a host expression is surely an integer: a size, a stride, a count, or arithmetic on such."""
    if isinstance(node, cst.Integer):
        return True
    if isinstance(node, cst.Name):
        return _named_whole(unit, launch, node.value)
    if isinstance(node, cst.BinaryOperation):
        whole = not isinstance(node.operator, cst.Divide)
        return whole and all(whole_number(unit, launch, side) for side in (node.left, node.right))
    if isinstance(node, cst.Subscript):
        return bool(re.search(r"(\.shape|\.size\(\)|\.stride\(\)|^CONFIG)$", unit.tree.text(node.value)))
    if isinstance(node, cst.Call):
        sizes = ("numel", "size", "stride", "len", "cdiv", "next_power_of_2", "element_size", "dim")
        if called(unit, node) in ("min", "max"):
            return all(whole_number(unit, launch, arg.value) for arg in node.args)
        return called(unit, node) in sizes and bool(node.args or isinstance(node.func, cst.Attribute))
    return False


def _named_whole(unit: Unit, launch: Launch, name: str) -> bool:
    bound = [
        (target.target, assign.value)
        for assign in unit.tree.find(launch.host, cst.Assign)
        for target in assign.targets
        if name in [n.value for n in name_nodes(unit, target.target)]
    ]
    if len(bound) != 1:
        return False
    target, value = bound[0]
    if isinstance(target, cst.Tuple):
        text = squeeze(unit.tree.text(value))
        return bool(re.search(r"\.(shape|size\(\)|stride\(\))(\[[\w:-]*\])?$", text))
    return name not in [n.value for n in name_nodes(unit, value)] and whole_number(unit, launch, value)
