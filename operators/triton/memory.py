"""Rewrites of loads and stores: how they use the caches, when they are issued, what is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import (
    REDUCTIONS,
    argument_of,
    assigned,
    calls,
    depends_on,
    effects,
    name_nodes,
    reads,
    writes,
)
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


def _blocks(unit: Unit, jit: Jit) -> list[Sequence[cst.CSTNode]]:
    return [jit.body, *(loop.body for loop in unit.loops if loop.jit is jit)]


def _loaded(unit: Unit, line: cst.CSTNode) -> tuple[str, cst.Call] | None:
    """Name and load of a line ``name = tl.load(…)`` or ``name = tl.load(…).to(…)``."""
    bound = assigned(line)
    if bound is None:
        return None
    value = bound[1]
    if (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value == "to"
    ):
        value = value.func.value
    found = calls(unit, value, "load")
    return (bound[0], found[0]) if found and found[0] is value else None


def _reducing(unit: Unit, line: cst.CSTNode) -> bool:
    return bool(isinstance(line, cst.For) or calls(unit, line, *REDUCTIONS, "dot"))


@rewrite(
    "hoist_load",
    needs="a load behind a reduction that it does not depend on; no store of the same argument between",
    reason="the data is on its way while the reduction runs",
)
def hoist_load(unit: Unit, _: Brief) -> Iterator[Edits]:
    """To right behind what it needs, and above the first reduction after that."""
    for jit in unit.kernels:
        for body in _blocks(unit, jit):
            for i, line in enumerate(body):
                found = _loaded(unit, line)
                if found is None:
                    continue
                needs = reads(unit, line) | writes(unit, line)
                to = i
                while (
                    to > 0
                    and not needs & writes(unit, body[to - 1])
                    and not _meets(unit, jit, body[to - 1], found)
                ):
                    to -= 1
                passed = [j for j in range(to, i) if _reducing(unit, body[j])]
                if passed:
                    text = unit.tree.block([line])
                    yield (unit.tree.before(body[passed[0]], text), unit.tree.drop(line))


def _meets(unit: Unit, jit: Jit, line: cst.CSTNode, found: tuple[str, cst.Call]) -> bool:
    """Whether a line uses the loaded name, or may write what is loaded."""
    name, call = found
    stores = effects(unit, line)
    clear = all(base(unit, jit, store) not in ("", base(unit, jit, call)) for store in stores)
    plain = all(store in calls(unit, line, "store") for store in stores)
    return name in reads(unit, line) or not (plain and clear) or bool(unit.tree.find(line, cst.Return))


@rewrite(
    "sink_load",
    needs="a load in front of a reduction that does not use it",
    reason="a load that comes late holds no registers while the reduction runs",
)
def sink_load(unit: Unit, _: Brief) -> Iterator[Edits]:
    """To right in front of its first use."""
    for jit in unit.kernels:
        for body in _blocks(unit, jit):
            for i, line in enumerate(body):
                found = _loaded(unit, line)
                if found is None:
                    continue
                needs, to = reads(unit, line) | writes(unit, line), i + 1
                while (
                    to < len(body)
                    and not needs & writes(unit, body[to])
                    and not _meets(unit, jit, body[to], found)
                ):
                    to += 1
                if to < len(body) and any(_reducing(unit, body[j]) for j in range(i + 1, to)):
                    text = unit.tree.block([line])
                    yield (unit.tree.drop(line), unit.tree.before(body[to], text))


@rewrite(
    "keep_value",
    needs="a second load of the same addresses in one block, of what nothing writes between",
    reason="the value is still in registers, and one read of memory is saved",
)
def keep_value(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The name of the first load takes the place of the second."""
    for jit in unit.kernels:
        for body in _blocks(unit, jit):
            for i, line in enumerate(body):
                found = _loaded(unit, line)
                if found is None:
                    continue
                for other in body[i + 1 :]:
                    again, value = _loaded(unit, other), assigned(other)
                    first = assigned(line)
                    if again and value and first and _alike(unit, first[1], value[1]):
                        yield (
                            (unit.tree.drop(other),)
                            if again[0] == found[0]
                            else (unit.tree.swap(value[1], found[0]),)
                        )
                        break
                    if (reads(unit, line) | {found[0]}) & writes(unit, other) or _stored(
                        unit, jit, other, found[1]
                    ):
                        break


def _alike(unit: Unit, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two loads give the same value: their text but for the hints to the caches."""
    texts = [
        re.sub(r",(eviction_policy|cache_modifier)=[\"'][\w.]*[\"']", "", squeeze(unit.tree.text(node)))
        for node in (one, other)
    ]
    return texts[0] == texts[1]


def _stored(unit: Unit, jit: Jit, line: cst.CSTNode, load: cst.Call) -> bool:
    return any(
        base(unit, jit, store) == base(unit, jit, load) or store not in calls(unit, line, "store")
        for store in effects(unit, line)
    )


@rewrite(
    "reread_value",
    needs="a loaded tile that is used both in front of and behind a reduction",
    reason="the second read comes from the cache, and the registers of the tile are free for other rows",
)
def reread_value(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The load is repeated in front of the first use behind the reduction."""
    for jit in unit.kernels:
        for i, line in enumerate(jit.body):
            found = _loaded(unit, line)
            if found is None:
                continue
            name, load = found
            rest = jit.body[i + 1 :]
            kept = reads(unit, line) | {name}
            reduced = next((j for j, other in enumerate(rest) if _reducing(unit, other)), None)
            if reduced is None or not any(name in reads(unit, other) for other in rest[: reduced + 1]):
                continue
            later = [j for j in range(reduced + 1, len(rest)) if name in reads(unit, rest[j])]
            if not later:
                continue
            between = rest[: later[0]]
            if not any(kept & writes(unit, o) or _stored(unit, jit, o, load) for o in between):
                yield (unit.tree.before(rest[later[0]], unit.tree.block([line])),)


MEMORY = (
    evict_first,
    evict_last,
    cache_loads,
    stream_stores,
    hints,
    hoist_load,
    sink_load,
    keep_value,
    reread_value,
)
