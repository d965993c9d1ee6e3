"""Rewrites of loads and stores: how they use the caches, when they are issued, what is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import argument_of, assigned, calls, depends_on, name_nodes, writes
from operators.triton.grids import axes
from operators.triton.masks import definition
from operators.triton.maths import added
from operators.triton.rewrite import rewrite
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import Edit, Edits, squeeze

HINTS = ("eviction_policy", "cache_modifier")  # the hardware takes one of them


def hinted(unit: Unit, call: cst.Call, name: str, value: str) -> Edits:
    """Edits that give a load or store one hint to the caches in place of any other; none where it has it."""
    given = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in HINTS]
    if not given:
        return (added(unit, call, name, f'"{value}"'),)
    arg = given[0]
    if len(given) > 1 or arg.keyword is None:
        return ()
    if arg.keyword.value == name:
        old = unit.tree.text(arg.value)
        return () if old.strip("\"'") == value else (unit.tree.swap(arg.value, f'"{value}"'),)
    return (Edit(unit.tree.start(arg.keyword), unit.tree.end(arg.value), f'{name}="{value}"'),)


def base(unit: Unit, jit: Jit, call: cst.Call) -> str:
    """The parameter that a load or store starts from; its text where there are several or none."""
    names = {n.value for n in name_nodes(unit, call.args[0].value)} if call.args else set()
    first = unit.tree.find(call, cst.Name)
    known = {p.name for p in jit.parameters if not p.constexpr}
    for name in [n.value for n in first if n.value in names]:
        if name in known:
            return name
        below = sorted(depends_on(unit, jit, frozenset({name})) & known)
        named = [p for p in below if re.search(r"ptr|_p$", p)]
        if len(named or below) == 1:
            return (named or below)[0]
    return squeeze(unit.tree.text(call))


@rewrite(
    "evict_first",
    needs="a load that nothing reads again, without that policy",
    reason="a line that is read once leaves the cache first and keeps others there",
)
def evict_first(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The last load of each argument, then all of them at once."""
    found = []
    for jit in unit.kernels:
        last = {base(unit, jit, call): call for call in calls(unit, jit.node, "load")}
        found += [
            edits for call in last.values() if (edits := hinted(unit, call, "eviction_policy", "evict_first"))
        ]
    yield from found
    if len(found) > 1:
        yield tuple(edit for edits in found for edit in edits)


@rewrite(
    "evict_last",
    needs="a load that is repeated later, or that other programs make too, without that policy",
    reason="a line that is needed again stays in the cache while others pass through",
)
def evict_last(unit: Unit, _: Brief) -> Iterator[Edits]:
    """One load at a time."""
    for jit in unit.kernels:
        loads = calls(unit, jit.node, "load")
        programs = set(axes(unit, jit))
        for i, call in enumerate(loads):
            again = any(base(unit, jit, other) == base(unit, jit, call) for other in loads[i + 1 :])
            if (again or _shared(unit, jit, call, len(programs))) and (
                edits := hinted(unit, call, "eviction_policy", "evict_last")
            ):
                yield edits


def _shared(unit: Unit, jit: Jit, call: cst.Call, programs: int) -> bool:
    """Whether a load's address leaves out an axis of the programs."""
    names = depends_on(unit, jit, frozenset(n.value for n in name_nodes(unit, call.args[0].value)))
    text = " ".join(
        [unit.tree.text(call.args[0].value)]
        + [
            unit.tree.text(line)
            for line in unit.tree.find(jit.node, cst.SimpleStatementLine)
            if writes(unit, line) & names
        ]
    )
    return len(set(re.findall(r"program_id\((?:axis\s*=\s*)?(\d)\)", text))) < programs


@rewrite(
    "cache_loads",
    needs="a load without a cache modifier",
    reason="what is read once need not pass through the first-level cache",
)
def cache_loads(unit: Unit, _: Brief) -> Iterator[Edits]:
    """`.cg` for one load at a time; it takes the place of an eviction policy."""
    for jit in unit.kernels:
        for call in calls(unit, jit.node, "load"):
            if argument_of(call, "cache_modifier") is None and argument_of(call, "volatile") is None:
                yield hinted(unit, call, "cache_modifier", ".cg")


@rewrite(
    "stream_stores",
    needs="a store without a cache modifier",
    reason="results that nobody reads here need not push inputs out of the cache",
)
def stream_stores(unit: Unit, _: Brief) -> Iterator[Edits]:
    """`.cs`, `.cg` or `.wt` for all stores of a kernel; another for those that have one."""
    for jit in unit.kernels:
        for modifier in (".cs", ".cg", ".wt"):
            found = [
                e
                for call in calls(unit, jit.node, "store")
                for e in hinted(unit, call, "cache_modifier", modifier)
            ]
            if found:
                yield tuple(found)


@rewrite(
    "hints",
    needs="offsets `pid * block + tl.arange(0, block)`, or those of a loop that steps by the block",
    reason="the compiler learns that a tile's offsets start at a multiple and are contiguous: wider accesses",
)
def hints(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Wraps the offsets of one line."""
    for jit in unit.jits:
        for line in unit.tree.find(jit.node, cst.SimpleStatementLine):
            bound = assigned(line)
            if bound is None or not isinstance(bound[1], cst.BinaryOperation):
                continue
            text = squeeze(unit.tree.text(bound[1]))
            found = re.fullmatch(r"(.+)\+tl\.arange\(0,(\w+)\)", text)
            if found and _is_multiple(unit, jit, bound[1], found[1], found[2]):
                value = unit.tree.text(bound[1])
                hint = f"tl.max_contiguous(tl.multiple_of({value}, {found[2]}), {found[2]})"
                yield (unit.tree.swap(bound[1], hint),)


def _is_multiple(unit: Unit, jit: Jit, site: cst.CSTNode, text: str, block: str) -> bool:
    """Whether a tile's start is a multiple of its width."""
    if re.fullmatch(rf"[\w.()]+\*{block}|{block}\*[\w.()]+", text):
        return True
    for loop in unit.loops:
        if loop.jit is jit and loop.var == text and unit.tree.covers(loop.node, site):
            return squeeze(loop.step) == block and squeeze(loop.start) == "0"
    value = definition(unit, jit, site, text)
    return (
        value is not None
        and text != squeeze(unit.tree.text(value))
        and _is_multiple(unit, jit, site, squeeze(unit.tree.text(value)), block)
    )


MEMORY = (evict_first, evict_last, cache_loads, stream_stores, hints)
