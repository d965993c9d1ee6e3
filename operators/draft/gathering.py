"""Elements that come from a place that depends on data or on a condition: gathers, pads, concatenations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from operators.draft.expressions import LOOSE, PRODUCT, SUM, Value, converted, literal
from operators.draft.operations import Operation, Ref, Undraftable
from operators.draft.sizes import Digits, Extent, Index, depth, place
from operators.draft.views import broadcast, moved, opaque

if TYPE_CHECKING:
    from operators.draft.values import Values


def _position(values: Values, ref: Ref, index: Index, extent: Extent, wraps: bool) -> Digits:
    """The index that a tensor of places holds; negative ones count from the end."""
    found = values.at(ref, broadcast(index, values.program.nodes[ref].shape))
    if extent == 1 and not extent.factors:
        return ()
    text = f"from_end({found.text}, {extent.text})" if wraps else found.text
    return opaque(f"({text})" if " " in text and not wraps else text, extent, found.depth)


def _gather(values: Values, node: Operation, index: Index) -> Value:
    source = node["self"]
    shape = values.program.nodes[source].shape
    axis = node["dim"] % max(1, len(shape))
    found = list(index)
    if shape:
        found[axis] = _position(values, node["index"], index, shape[axis], wraps=False)
    return values.at(source, tuple(found))


def _index_select(values: Values, node: Operation, index: Index) -> Value:
    source = node["self"]
    shape = values.program.nodes[source].shape
    axis = node["dim"] % len(shape)
    found = list(index)
    found[axis] = _position(values, node["index"], (index[axis],), shape[axis], wraps=False)
    return values.at(source, tuple(found))


def _embedding(values: Values, node: Operation, index: Index) -> Value:
    shape = values.program.nodes[node["weight"]].shape
    row = _position(values, node["indices"], index[:-1], shape[0], wraps=False)
    return values.at(node["weight"], (row, index[-1]))


def _index(values: Values, node: Operation, index: Index) -> Value:
    source, places = node["self"], list(node["indices"])
    nodes = values.program.nodes
    shape = nodes[source].shape
    places += [None] * (len(shape) - len(places))
    used = [n for n, ref in enumerate(places) if ref is not None]
    if any(nodes[places[n]].dtype == "bool" for n in used):
        raise Undraftable("aten.index with a mask")
    rank = max(len(nodes[places[n]].shape) for n in used)
    together = used == list(range(used[0], used[-1] + 1))
    first = used[0] if together else 0
    common = index[first : first + rank]
    rest = [*index[:first], *index[first + rank :]]
    found: list[Digits] = []
    for axis, ref in enumerate(places):
        found.append(
            _position(values, ref, common, shape[axis], wraps=True) if ref is not None else rest.pop(0)
        )
    return values.at(source, tuple(found))


def _pad(values: Values, node: Operation, index: Index) -> Value:
    source, pad = node["self"], node["pad"]
    shape = values.program.nodes[source].shape
    found, conditions, deep = list(index), [], [0]
    for n in range(len(pad) // 2):
        axis, before, after = len(shape) - 1 - n, pad[2 * n], pad[2 * n + 1]
        if before == 0 == after:
            continue
        inside = moved(index[axis] or opaque("0", shape[axis], 0), -before, 1, shape[axis])
        text = place(inside)
        deep.append(depth(inside))
        if before > 0:
            conditions.append(f"{text} >= 0")
        if after > 0:
            conditions.append(f"{text} < {shape[axis].atom}")
        found[axis] = inside if shape[axis] != 1 else ()
    number = literal(node["value"] or 0, node.c_type)
    return _chosen(values.guarded(source, tuple(found)), conditions, number, deep)


def _cat(values: Values, node: Operation, index: Index) -> Value:
    parts: list[Ref] = [ref for ref in node["tensors"] if values.program.nodes[ref].count != 0]
    axis = (node["dim"] or 0) % len(node.shape)
    at = place(index[axis])
    deep = depth(index[axis])
    start: list[str] = []
    made: Value | None = None
    choices: list[tuple[str, Value]] = []
    for ref in parts:
        extent = values.program.nodes[ref].shape[axis]
        text = f"({' - '.join([at, *start])})" if start else at
        inside = opaque(text, extent, deep) if extent != 1 or extent.factors else ()
        value = converted(values.guarded(ref, (*index[:axis], inside, *index[axis + 1 :])), node.c_type)
        start.append(extent.atom)
        choices.append((f"{at} < {' + '.join(start)}", value))
    for condition, value in reversed(choices):
        if made is None:
            made = value
        else:
            text = f"{condition} ? {value.within(SUM)} : {made.within(SUM)}"
            made = Value(text, node.c_type, LOOSE, max(deep, value.depth, made.depth))
    assert made is not None
    return made


def _slice_scatter(values: Values, node: Operation, index: Index) -> Value:
    shape = values.program.nodes[node["src"]].shape
    axis = (node["dim"] or 0) % len(node.shape)
    start, step = node["start"] or 0, node["step"] or 1
    if isinstance(start, Extent) and start.factors:
        return _written_from(values, node, index, axis, start)
    start = start + node.shape[axis] if start < 0 else min(start, node.shape[axis])
    if step != 1:
        raise Undraftable("aten.slice_scatter with a step")
    inside = moved(index[axis] or opaque("0", shape[axis], 0), -start, 1, shape[axis])
    text = place(inside)
    conditions = ([f"{text} >= 0"] if start else []) + (
        [f"{text} < {shape[axis].atom}"] if start + shape[axis] != node.shape[axis] else []
    )
    place_in = inside if shape[axis] != 1 else ()
    written = values.guarded(node["src"], (*index[:axis], place_in, *index[axis + 1 :]))
    return _chosen(written, conditions, values.guarded(node["self"], index), [depth(inside)])


def _written_from(values: Values, node: Operation, index: Index, axis: int, start: Extent) -> Value:
    """A slice that begins where sizes say."""
    extent = values.program.nodes[node["src"]].shape[axis]
    text = f"({place(index[axis])} - {start.atom})"
    inside = opaque(text, extent, depth(index[axis]))
    written = values.guarded(node["src"], (*index[:axis], inside, *index[axis + 1 :]))
    conditions = [f"{text} >= 0", f"{text} < {extent.atom}"]
    return _chosen(written, conditions, values.guarded(node["self"], index), [depth(inside)])


def _select_scatter(values: Values, node: Operation, index: Index) -> Value:
    axis = node["dim"] % len(node.shape)
    at = node["index"] % node.shape[axis]
    condition = f"{place(index[axis])} == {at}"
    written = values.guarded(node["src"], (*index[:axis], *index[axis + 1 :]))
    return _chosen(written, [condition], values.guarded(node["self"], index), [depth(index[axis])])


def _chosen(value: Value, conditions: list[str], other: Value, deep: list[int]) -> Value:
    value, other = converted(value, other.type), other
    if not conditions:
        return value
    text = f"{' && '.join(conditions)} ? {value.within(SUM)} : {other.within(SUM)}"
    return Value(text, other.type, LOOSE, max(value.depth, other.depth, *deep))


def _counted(_: Values, node: Operation, index: Index) -> Value:
    """arange and iota: start + step * place."""
    start = node["start"] or 0
    step = 1 if node["step"] is None else node["step"]
    at = Value(place(index[0]), "int64_t", SUM if " " in place(index[0]) else 3, depth(index[0]))
    found = converted(at, node.c_type)
    if step != 1:
        found = Value(
            f"{literal(step, node.c_type).within(PRODUCT)} * {found.within(PRODUCT)}",
            node.c_type,
            PRODUCT,
            at.depth,
        )
    if start:
        found = Value(f"{literal(start, node.c_type).text} + {found.within(SUM)}", node.c_type, SUM, at.depth)
    return found


RULES: dict[str, Callable[[Any, Operation, Index], Value]] = {
    "aten.gather": _gather,
    "aten.index_select": _index_select,
    "aten.embedding": _embedding,
    "aten.index": _index,
    "aten._unsafe_index": _index,
    "aten.constant_pad_nd": _pad,
    "aten.cat": _cat,
    "aten.slice_scatter": _slice_scatter,
    "aten.select_scatter": _select_scatter,
    "aten.arange": _counted,
    "prims.iota": _counted,
}
