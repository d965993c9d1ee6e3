"""Rewrites of what a launch passes: sizes known when compiling, widths of offsets, fresh outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import calls, depends_on, name_nodes, writes
from operators.triton.grids import axes, whole_number
from operators.triton.launch import named_index
from operators.triton.rewrite import rewrite
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import Edit, Edits, squeeze

POINTED = ("load", "store", "atomic_add", "atomic_max", "atomic_cas", "atomic_xchg")


@rewrite(
    "constexpr_sizes",
    needs="an integer argument that the host takes from a size or stride, or writes as a literal",
    reason="what is known when compiling needs no register, and divisions by it become multiplications",
)
def constexpr_sizes(unit: Unit, _: Brief) -> Iterator[Edits]:
    """One parameter at a time, then all of a kernel."""
    for jit in unit.kernels:
        found = []
        for parameter in jit.parameters:
            passed = [(launch, launch.given.get(parameter.name)) for launch in unit.launches_of(jit)]
            plain = parameter.node.annotation is None
            bound = any(parameter.name in writes(unit, line) for line in jit.body)
            if plain and not bound and all(node and whole_number(unit, at, node) for at, node in passed):
                at = unit.tree.end(parameter.node.name)
                found.append(Edit(at, at, ": tl.constexpr"))
        yield from ((edit,) for edit in found)
        if len(found) > 1:
            yield tuple(found)


@rewrite(
    "index_width",
    needs="a program index that is, or is not, widened to 64 bits",
    reason="32-bit offsets need half the registers; 64-bit ones are added to the pointer once",
)
def index_width(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Widens a read of the index, or narrows all of them and asserts in the host that 32 bits are enough."""
    for jit in unit.kernels:
        sites = [call for found in axes(unit, jit).values() for call in found]
        wide = [(call, cast) for call in sites if (cast := _widened(unit, call)) is not None]
        for call in sites:
            if _widened(unit, call) is None and named_index(unit, jit, [call]):
                at = unit.tree.end(call)
                yield (Edit(at, at, ".to(tl.int64)"),)
        launches = unit.launches_of(jit)
        tensors = _tensors(unit, jit)
        if wide and tensors and all(launch.statement in unit.body(launch.host) for launch in launches):
            narrow = [Edit(unit.tree.end(call), unit.tree.end(cast), "") for call, cast in wide]
            guards = [
                unit.tree.before(
                    launch.statement,
                    f"assert max(t.numel() for t in ({', '.join(tensors)},)) < 2**31  # 32-bit offsets\n",
                )
                for launch in launches
            ]
            yield (*narrow, *guards)


def _widened(unit: Unit, call: cst.Call) -> cst.Call | None:
    above = list(unit.tree.above(call))[:2]
    if len(above) == 2 and isinstance(above[0], cst.Attribute) and isinstance(above[1], cst.Call):
        text = squeeze(unit.tree.text(above[1]))
        return above[1] if re.search(r"\.to\(tl\.int64\)$", text) else None
    return None


def _tensors(unit: Unit, jit: Jit) -> list[str]:
    """The tensors that a kernel is launched with, inputs and new ones; none where one is no plain name."""
    found: list[str] = []
    for launch in unit.launches_of(jit):
        for name, node in launch.given.items():
            parameter = jit.parameter(name)
            pointed = _is_pointer(unit, jit, name)
            if parameter is None or parameter.constexpr or not pointed:
                continue
            if not isinstance(node, cst.Name):
                return []
            value = unit.host_value(launch, node)
            inputs = {p.name.value for p in launch.host.params.params}
            if node.value in inputs or unit.tree.text(value).startswith("torch."):
                found.append(node.value)
    return list(dict.fromkeys(found))


def _is_pointer(unit: Unit, jit: Jit, name: str) -> bool:
    """Whether a parameter is what loads and stores start from, rather than a part of their offsets."""
    for call in calls(unit, jit.node, *POINTED):
        bases = {n.value for n in name_nodes(unit, call.args[0].value)} if call.args else set()
        if name in bases or name in depends_on(unit, jit, frozenset(bases)):
            launches = unit.launches_of(jit)
            return not all(
                whole_number(unit, launch, launch.given[name]) for launch in launches if name in launch.given
            )
    return False


@rewrite(
    "empty_output",
    needs="`torch.zeros` or `zeros_like` of a tensor that a kernel only stores to",
    reason="what the kernel overwrites need not be filled first",
)
def empty_output(unit: Unit, _: Brief) -> Iterator[Edits]:
    """`torch.empty` in its place."""
    for launch in unit.launches:
        for name, node in launch.given.items():
            if not isinstance(node, cst.Name) or not _only_stored(unit, launch.kernel, name):
                continue
            value = unit.host_value(launch, node)
            if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
                continue
            made = value.func.attr.value
            if made in ("zeros", "zeros_like", "new_zeros"):
                yield (unit.tree.swap(value.func.attr, made.replace("zeros", "empty")),)


def _only_stored(unit: Unit, jit: Jit, name: str) -> bool:
    """Whether a pointer is the base of plain stores and of nothing else."""
    uses = name_nodes(unit, jit.node, name)[1:]
    for use in uses:
        call = next((node for node in unit.tree.above(use) if isinstance(node, cst.Call)), None)
        inside = call is not None and unit.tree.covers(call.args[0], use)
        if call is None or call not in calls(unit, jit.node, "store") or not inside:
            return False
    return bool(uses)


SIZES = (constexpr_sizes, index_width, empty_output)
