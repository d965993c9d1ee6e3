"""Operations that only say where an element comes from: the result's index becomes one of the source."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from operators.draft.operations import Operation, Undraftable
from operators.draft.sizes import ONE, Digit, Digits, Extent, Index, depth, place, regrouped

View = Callable[[Operation, Sequence[Extent], Index], Index]


def opaque(text: str, extent: Extent, deep: int) -> Digits:
    """An index that is any text."""
    return (Digit(text, extent, ONE, extent, deep),)


def moved(digits: Digits, by: int, times: int, extent: Extent) -> Digits:
    """``times * index + by`` as an index below an extent."""
    if times == 1 and by == 0 and len(digits) == 1 and digits[0].size == extent:
        return digits
    text = place(digits)
    if text.isdigit():
        text = str(int(text) * times + by)
        return opaque(text, extent, 0)
    if times != 1:
        text = f"{f'({text})' if ' ' in text else text} * {times}"
    if by:
        text = f"{text} {'+' if by > 0 else '-'} {abs(by)}"
    return opaque(f"({text})" if " " in text else text, extent, depth(digits))


def _reshape(_: Operation, source: Sequence[Extent], index: Index) -> Index:
    return regrouped([digit for digits in index for digit in digits], source)


def _permute(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    found: list[Digits] = [()] * len(source)
    for at, dim in enumerate(node["dims"]):
        found[dim % len(source)] = index[at]
    return tuple(found)


def _transpose(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    if len(source) < 2:
        return index
    first, second = (0, 1) if node["dim0"] is None else (node["dim0"], node["dim1"])
    found = list(index)
    found[first], found[second] = found[second], found[first]
    return tuple(found)


def _expand(_: Operation, source: Sequence[Extent], index: Index) -> Index:
    return broadcast(index, source)


def broadcast(index: Index, source: Sequence[Extent]) -> Index:
    """The index into a tensor that is broadcast to the index's shape."""
    last = index[len(index) - len(source) :]
    return tuple(
        () if extent == 1 and not extent.factors else digits
        for digits, extent in zip(last, source, strict=True)
    )


def _slice(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    axis = (node["dim"] or 0) % len(source)
    start, step = node["start"] or 0, node["step"] or 1
    found = list(index)
    if start < 0:
        start = max(0, start + source[axis])
    if isinstance(start, Extent) and start.factors:
        text = f"({place(index[axis])} + {start.text})" if index[axis] else start.atom
        found[axis] = opaque(text if step == 1 else _refuse(node), source[axis], depth(index[axis]))
    elif source[axis] != 1:
        digits = index[axis] or opaque("0", ONE, 0)
        found[axis] = moved(digits, min(start, source[axis]), step, source[axis])
    return tuple(found)


def _refuse(node: Operation) -> str:
    raise Undraftable(f"{node.op} with a step and a start that varies")


def _select(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    axis = node["dim"] % len(source)
    at = node["index"]
    extent = source[axis]
    text = (
        at.text
        if isinstance(at, Extent)
        else str(at)
        if at >= 0
        else f"({extent.text} - {-at})"
        if extent.factors
        else str(extent + at)
    )
    digits = opaque(text, extent, 0) if extent != 1 else ()
    return (*index[:axis], digits, *index[axis:])


def _flip(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    found = list(index)
    for dim in node["dims"]:
        axis = dim % len(source)
        if source[axis] != 1:
            text = f"({source[axis].text} - 1 - {place(index[axis])})"
            found[axis] = opaque(text, source[axis], depth(index[axis]))
    return tuple(found)


def _as_strided(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    """Only what is a reshape of something contiguous."""
    step = 1
    for extent, stride in zip(reversed(node.shape), reversed(node["stride"]), strict=True):
        if extent != 1 and stride != step:
            raise Undraftable(node.op)
        step *= extent
    if node["storage_offset"]:
        raise Undraftable(node.op)
    return _reshape(node, source, index)


def _diagonal(node: Operation, source: Sequence[Extent], index: Index) -> Index:
    first, second = (
        (node["dim1"] or 0) % len(source),
        (1 if node["dim2"] is None else node["dim2"]) % len(source),
    )
    offset = node["offset"] or 0
    rest = list(index[:-1])
    found: list[Digits] = []
    for axis in range(len(source)):
        if axis == first:
            found.append(moved(index[-1], max(0, -offset), 1, source[axis]))
        elif axis == second:
            found.append(moved(index[-1], max(0, offset), 1, source[axis]))
        else:
            found.append(rest.pop(0))
    return tuple(found)


def _same(_: Operation, __: Sequence[Extent], index: Index) -> Index:
    return index


VIEWS: dict[str, View] = {
    "aten.view": _reshape,
    "aten._unsafe_view": _reshape,
    "aten.reshape": _reshape,
    "aten._reshape_copy": _reshape,
    "aten.view_copy": _reshape,
    "aten.unsqueeze": _reshape,
    "aten.squeeze": _reshape,
    "aten.as_strided": _as_strided,
    "aten.permute": _permute,
    "aten.transpose": _transpose,
    "aten.t": _transpose,
    "aten.expand": _expand,
    "aten.slice": _slice,
    "aten.select": _select,
    "aten.flip": _flip,
    "aten.diagonal": _diagonal,
    "aten.alias": _same,
    "aten.clone": _same,
    "aten.detach": _same,
}
