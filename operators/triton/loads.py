"""Rewrites of when loads are issued, and of what is kept in registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import assigned, calls, effects, reads, writes
from operators.triton.memory import base
from operators.triton.rewrite import rewrite
from operators.triton.shapes import REDUCTIONS
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import Edits, squeeze


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


LOADS = (hoist_load, sink_load, keep_value, reread_value)
