"""Rewrites of masks: what the sizes prove to be inside needs none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import assigned, called, calls, name_nodes, writes
from operators.triton.grids import axes, grid_of
from operators.triton.knobs import argument
from operators.triton.rewrite import rewrite
from operators.triton.structure import Jit, Launch, Loop, Unit
from operators.triton.syntax import Edit, Edits, indented, squeeze

Term = tuple[bool, cst.BaseExpression]  # whether it is added, and what


@dataclass(frozen=True, eq=False)
class Bound:
    """A comparison ``start + tl.arange(0, block) < limit``, however its terms are spread.

    Attributes:
        start: texts of the terms that are added to the lanes; none for a tile that begins at zero.
    """

    jit: Jit
    node: cst.Comparison
    start: tuple[str, ...]
    block: str
    limit: str


def bounds(unit: Unit, jit: Jit) -> list[Bound]:
    """All such comparisons of a kernel."""
    found = []
    for node in unit.tree.find(jit.node, cst.Comparison):
        if len(node.comparisons) != 1 or not isinstance(node.comparisons[0].operator, cst.LessThan):
            continue
        terms = _terms(unit, jit, node, node.left, True)
        terms += _terms(unit, jit, node, node.comparisons[0].comparator, False)
        lanes = [t for plus, t in terms if plus and isinstance(t, cst.Call) and called(unit, t) == "arange"]
        start = [unit.tree.text(t) for plus, t in terms if plus and t not in lanes]
        limit = [unit.tree.text(t) for plus, t in terms if not plus]
        if len(lanes) == 1 and len(limit) == 1 and unit.tree.text(lanes[0].args[0].value) == "0":
            block = unit.tree.text(lanes[0].args[1].value)
            found.append(Bound(jit, node, tuple(start), block, limit[0]))
    return found


def _terms(unit: Unit, jit: Jit, site: cst.CSTNode, node: cst.BaseExpression, plus: bool) -> list[Term]:
    """The terms of a sum, through names that stand for sums and through ``[:, None]``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
        other = plus == isinstance(node.operator, cst.Add)
        return [*_terms(unit, jit, site, node.left, plus), *_terms(unit, jit, site, node.right, other)]
    if isinstance(node, cst.Subscript) and re.fullmatch(r"[\s:,None]+", _index(unit, node)):
        return _terms(unit, jit, site, node.value, plus)
    if isinstance(node, cst.Name) and (value := definition(unit, jit, site, node.value)) is not None:
        inner = _terms(unit, jit, site, value, plus)
        if len(inner) > 1 or (isinstance(inner[0][1], cst.Call) and called(unit, inner[0][1]) == "arange"):
            return inner
    return [(plus, node)]


def _index(unit: Unit, node: cst.Subscript) -> str:
    return ",".join(unit.tree.text(element) for element in node.slice)


def definition(unit: Unit, jit: Jit, site: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """The value of a name at a place: bound once, or bound last before the place in the same block."""
    lines = [s for s in unit.tree.find(jit.node, cst.SimpleStatementLine) if name in writes(unit, s)]
    if not lines or jit.parameter(name) or any(loop.var == name for loop in unit.loops if loop.jit is jit):
        return None
    if len(lines) > 1:
        near = [line for line in lines if next(unit.tree.above(line)) in list(unit.tree.above(site))]
        lines = [line for line in near if unit.tree.end(line) <= unit.tree.start(site)][-1:]
    bound = assigned(lines[0]) if lines else None
    return bound[1] if bound else None


def _loop_of(unit: Unit, bound: Bound) -> Loop | None:
    """The loop that gives a tile its start."""
    for loop in unit.loops:
        if loop.jit is bound.jit and unit.tree.covers(loop.node, bound.node) and loop.var in bound.start:
            return loop
    return None


def _steps_to_limit(loop: Loop, bound: Bound) -> bool:
    return (
        bound.start == (loop.var,)
        and loop.kind != "tl.static_range"
        and (squeeze(loop.start), squeeze(loop.stop), squeeze(loop.step)) == ("0", bound.limit, bound.block)
    )


def _even(unit: Unit, bound: Bound, launch: Launch) -> str | None:
    """A host expression that is true where no lane of any tile is outside; None where nothing proves it."""
    limit, block = unit.value(launch, bound.limit), unit.value(launch, bound.block)
    rebound = any({bound.limit, bound.block} & writes(unit, line) for line in bound.jit.body)
    if limit is None or block is None or rebound:
        return None
    if not bound.start:
        return f"{limit} == {block}"
    loop = _loop_of(unit, bound)
    if loop is not None:
        return f"{limit} % {block} == 0" if _steps_to_limit(loop, bound) else None
    if len(bound.start) == 1 and (axis := _tile_axis(unit, bound)) is not None:
        grid = grid_of(unit, launch)
        size = squeeze(grid.sizes[axis]) if grid and axis < len(grid.sizes) else ""
        if size in (f"triton.cdiv({squeeze(limit)},{squeeze(block)})", f"{squeeze(limit)}//{squeeze(block)}"):
            return f"{limit} % {block} == 0"
    return None


def _tile_axis(unit: Unit, bound: Bound) -> int | None:
    """The program axis k where a tile starts at ``tl.program_id(k) * block``."""
    text = squeeze(bound.start[0])
    value = definition(unit, bound.jit, bound.node, text)
    text = squeeze(unit.tree.text(value)) if value is not None else text
    for left, right in ((bound.block, None), (None, bound.block)):
        factor = text.removeprefix(f"{left}*") if left else text.removesuffix(f"*{right}")
        if factor == text:
            continue
        named = definition(unit, bound.jit, bound.node, factor)
        found = squeeze(unit.tree.text(named)) if named is not None else factor
        axis = re.fullmatch(r"tl\.program_id\((?:axis=)?(\d)\)(?:\.to\(tl\.int64\))?", found)
        if axis is not None:
            return int(axis[1])
    return None


@rewrite(
    "even_mask",
    needs="a mask `start + lanes < n` of tiles that begin at 0 and step by their width",
    reason="where the width divides n, which the host checks, the masks fold away and loads become wider",
)
def even_mask(unit: Unit, _: Brief) -> Iterator[Edits]:
    """A compile-time flag that the host works out makes such masks true."""
    for jit in unit.kernels:
        groups: dict[tuple[str, ...], list[Bound]] = {}
        for bound in bounds(unit, jit):
            texts = [_even(unit, bound, launch) for launch in unit.launches_of(jit)]
            holder = next(unit.tree.above(bound.node))
            known = isinstance(holder, cst.BinaryOperation) and "EVEN" in unit.tree.text(holder)
            if None not in texts and not known:
                groups.setdefault(tuple(str(text) for text in texts), []).append(bound)
        for texts_, found in groups.items():
            name = unit.tree.fresh("EVEN")
            values = dict(zip(unit.launches_of(jit), texts_, strict=True))
            added = argument(unit, jit, name, values.get)
            if added is not None:
                yield (*added, *(_or(unit, bound.node, name) for bound in found))


def _or(unit: Unit, node: cst.Comparison, flag: str) -> Edit:
    text = f"({_bare(unit, node)}) | {flag}"
    alone = isinstance(next(unit.tree.above(node)), cst.Assign | cst.Arg)
    return unit.tree.swap(node, text if alone else f"({text})")


def _bare(unit: Unit, node: cst.BaseExpression) -> str:
    text = unit.tree.text(node)
    return text[1:-1] if node.lpar else text


def unmasked(unit: Unit, jit: Jit, statements: Sequence[cst.CSTNode], found: Sequence[Bound]) -> list[Edit]:
    """Edits that drop the masks which are just these comparisons, from the loads and stores in a block."""
    edits = []
    texts = {squeeze(_bare(unit, bound.node)) for bound in found}
    for statement in statements:
        for call in calls(unit, statement, "load", "store"):
            mask = next((a for a in call.args if a.keyword and a.keyword.value == "mask"), None)
            if mask is None:
                continue
            value = mask.value
            if isinstance(value, cst.Name):
                value = definition(unit, jit, call, value.value) or value
            if squeeze(_bare(unit, value)) in texts:
                gone = [mask] + [a for a in call.args if a.keyword and a.keyword.value == "other"]
                edits += [_without(unit, call, arg) for arg in gone]
    return edits


def _without(unit: Unit, call: cst.Call, arg: cst.Arg) -> Edit:
    before = call.args[list(call.args).index(arg) - 1]
    return Edit(unit.tree.end(before.value), unit.tree.end(arg.value), "")


@rewrite(
    "peel_last",
    needs="a loop over tiles whose masks only matter in the last one",
    reason="all tiles but the last need no mask",
)
def peel_last(unit: Unit, _: Brief) -> Iterator[Edits]:
    """A loop over the whole tiles without masks, and one over the rest with them."""
    for loop in unit.loops:
        found = [
            bound
            for bound in bounds(unit, loop.jit)
            if _loop_of(unit, bound) is loop and _steps_to_limit(loop, bound)
        ]
        edits = unmasked(unit, loop.jit, loop.body, found)
        if not edits or len(unit.loops) > 12:
            continue
        whole = unit.tree.fresh("whole")
        limit, step = loop.stop, loop.step
        stop, start = _places(loop)
        body = indented(_tidied(unit.tree.block(loop.body, edits), found, unit))
        fast = f"{whole} = {limit} // {step} * {step}\n{_header(unit, loop, stop, whole)}{body}"
        second = [unit.tree.swap(stop, f"{whole}, {limit}")] if start is None else []
        second += [unit.tree.swap(start, whole)] if start is not None else []
        yield (unit.tree.before(loop.node, fast), *second)


def _places(loop: Loop) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """The expressions of a loop's end and start."""
    plain = [arg.value for arg in loop.call.args if arg.keyword is None]
    return (plain[0], None) if len(plain) == 1 else (plain[1], plain[0])


def _header(unit: Unit, loop: Loop, stop: cst.BaseExpression, text: str) -> str:
    data, start = unit.tree.data, unit.tree.start(loop.node)
    head = data[start : unit.tree.start(stop)].decode()
    tail = data[unit.tree.end(stop) : unit.tree.end(loop.call)].decode()
    return f"{head}{text}{tail}:\n"


def _tidied(text: str, found: Sequence[Bound], unit: Unit) -> str:
    """A block without the lines that only set a mask which nothing reads any more."""
    for bound in found:
        for holder in unit.tree.above(bound.node):
            name = assigned(holder)
            line = unit.tree.block([holder]) if name and name[1] is bound.node else ""
            if line and name and len(re.findall(rf"\b{name[0]}\b", text)) == 1:
                text = text.replace(line, "", 1)
    return text


@rewrite(
    "interior_split",
    needs="a kernel whose tile `pid * block` is masked at its end, in straight line to its last statement",
    reason="only the last program pays for masks; the others take a path without them",
)
def interior_split(unit: Unit, _: Brief) -> Iterator[Edits]:
    """A branch on the program's index; both sides hold all that follows the masked tile's offsets."""
    for jit in unit.kernels:
        found = [
            bound
            for bound in bounds(unit, jit)
            if _loop_of(unit, bound) is None and len(bound.start) == 1 and _tile_axis(unit, bound) is not None
        ]
        if not found or any(unit.tree.find(s, cst.Return) or unit.tree.find(s, cst.If) for s in jit.body):
            continue
        first, start = found[0], found[0].start[0]
        same = [b for b in found if (b.start, b.block, b.limit) == (first.start, first.block, first.limit)]
        at = next(
            (
                i
                for i, line in enumerate(jit.body)
                if calls(unit, line, "load", "store") or any(unit.tree.covers(line, b.node) for b in same)
            ),
            0,
        )
        rest = jit.body[at:]
        edits = unmasked(unit, jit, rest, same)
        names = {n.value for n in name_nodes(unit, first.node)}
        known = {p.name for p in jit.parameters} | {n for line in jit.body[:at] for n in writes(unit, line)}
        late = any((names | known) & writes(unit, line) for line in rest)  # a branch may not change a type
        if edits and not late and axes(unit, jit):
            inside = indented(_tidied(unit.tree.block(rest, edits), same, unit))
            edge = indented(unit.tree.block(rest))
            test = f"if {start} + {first.block} <= {first.limit}:\n"
            whole = indented(f"{test}{inside}else:\n{edge}", unit.tree.indent(rest[0]))
            yield (Edit(unit.tree.lines(rest[0])[0], unit.tree.lines(rest[-1])[1], whole),)


MASKS = (even_mask, peel_last, interior_split)
