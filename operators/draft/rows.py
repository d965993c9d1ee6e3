"""Rows: one parallel loop over what the reductions keep, with inner passes over what they reduce.

A softmax or a norm becomes one such stage: its maximum, its sums and its result are passes over the same row,
and what is known once a row is computed once a row. A plain elementwise operation is a stage of rows, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from operators.draft.expressions import ATOM, Value, converted
from operators.draft.loops import Stage, Write, divisions, nest, write
from operators.draft.operations import Operation
from operators.draft.sizes import Digits, Extent, Index, joined, place, product, regrouped, variable
from operators.draft.values import Array, Local, Mismatch, Values, stored

REDUCTIONS = (
    "aten.sum", "aten.mean", "aten.amax", "aten.amin", "aten.prod", "aten.any", "aten.all", "aten.argmax",
    "aten.argmin", "draft.top",
)  # fmt: skip
FEW_ROWS = 4
MANY = 1 << 16  # terms of a sum that float does not hold
INNER = ("i", "j", "k", "l", "m")


@dataclass(frozen=True)
class Space:
    """A shape, some of whose dimensions are the rows."""

    shape: tuple[Extent, ...]
    kept: tuple[int, ...]

    @property
    def inner(self) -> list[int]:
        """The other dimensions."""
        return [n for n in range(len(self.shape)) if n not in self.kept]


def reduced(node: Operation, rank: int) -> list[int]:
    """The dimensions that a reduction reduces."""
    dims = node["dim"]
    if dims is None or dims == []:
        return list(range(rank))
    return [dim % rank for dim in (dims if isinstance(dims, list) else [dims])] if rank else []


class Rows(Stage):
    """A stage over the rows of one space."""

    def __init__(self, space: Space, *, plain: bool = False) -> None:
        super().__init__()
        self.space = space
        self.plain = plain  # without reductions: how it is cut into rows is free

    def and_computes(self, name: str) -> Rows:
        """The same with one more reduction."""
        made = Rows(self.space, plain=self.plain)
        made.computes, made.writes = [*self.computes, name], self.writes
        return made

    def and_writes(self, one: Write) -> Rows:
        """The same with one more write."""
        made = Rows(self.space, plain=self.plain)
        made.computes, made.writes = self.computes, [*self.writes, one]
        return made

    def render(self, values: Values, kept: dict[str, Array]) -> list[str]:
        """The cheapest of the ways to write its loops."""
        shape = self.space.shape
        if self.plain:
            cuts = [Space(shape, tuple(range(n))) for n in range(len(shape), -1, -1)]
            ways = [(space, merged) for space in cuts for merged in (True, False)]
        else:
            ways = [(self.space, True), (self.space, False)]
        found = [_Writer(values.again(), space, merged, kept).stage(self) for space, merged in ways]
        return min(found, key=lambda way: way[0])[1]


class _Writer:
    """Writes one way."""

    def __init__(self, values: Values, space: Space, merged: bool, kept: dict[str, Array]) -> None:
        self.values, self.space, self.kept = values, space, kept
        shape = space.shape
        rows = product(shape[n] for n in space.kept)
        self.rows = rows
        self.looped = int(rows) != 1 or bool(rows.factors)
        self.row_depth = 1 if self.looped else 0
        self.row: Digits = variable("row", rows, 1)
        index: list[Digits] = [()] * len(shape)
        for n, digits in zip(space.kept, regrouped(self.row, [shape[n] for n in space.kept]), strict=True):
            index[n] = digits
        inner = [shape[n] for n in space.inner]
        self.count = product(inner)
        self.inner_names: list[tuple[str, Extent]] = []
        if merged:
            self._loop(self.count)
            parts = regrouped(self._variable(0), inner) if self.inner_names else tuple(() for _ in inner)
            self.inner: Digits = self._variable(0) if self.inner_names else ()
        else:
            parts = ()
            for extent in inner:
                if self._loop(extent):
                    parts += (self._variable(len(self.inner_names) - 1),)
                else:
                    parts += ((),)
            self.inner = tuple(digit for digits in parts for digit in digits)
        for n, digits in zip(space.inner, parts, strict=True):
            index[n] = digits
        self.index: Index = tuple(index)
        self.flat: Digits = joined(digit for digits in index for digit in digits)
        self.spread = int(rows) < FEW_ROWS and bool(self.inner_names)  # parallel within a row instead

    def _loop(self, extent: Extent) -> bool:
        if int(extent) == 1 and not extent.factors:
            return False
        self.inner_names.append((INNER[len(self.inner_names)], extent))
        return True

    def _variable(self, n: int) -> Digits:
        name, extent = self.inner_names[n]
        return variable(name, extent, self.row_depth + 1 + n)

    def stage(self, stage: Rows) -> tuple[float, list[str]]:
        values = self.values
        if self.looped:
            values.enter()
        for name in stage.computes:
            self._reduce(values.program.nodes[name])
        whole = [w for w in stage.writes if self._is_whole(w)]
        for one in stage.writes:
            if one not in whole:
                write(values, [one], self.row, self.rows)
        if whole:
            total = product(self.space.shape)
            outer = "parallel for" if self.spread else ""
            nest(values, self.inner_names, lambda: write(values, whole, self.flat, total), outer, "simd")
        if self.looped:
            body = values.leave()
            pragma = [] if self.spread else ["#pragma omp parallel for"]
            head = f"for (int64_t row = 0; row < {self.rows.text}; ++row) {{"
            values.write(*pragma, head, *body, "}")
        lines = values.levels[0].lines
        return self._cost(lines), lines

    def _is_whole(self, one: Write) -> bool:
        count = int(product(self.values.program.nodes[one.node].shape))
        if count == int(product(self.space.shape)):
            return True
        if count == int(self.rows):
            return False
        raise Mismatch(one.node)

    def _cost(self, lines: list[str]) -> float:
        rows, inner = int(self.rows), int(self.count)
        deep = self.row_depth + len(self.inner_names)
        cost = rows * (2.0 * len(self.inner_names) ** 2) + (4.0 * rows if 1 < inner < 8 else 0.0)
        if self.spread and rows > 1:
            cost += 0.1 * rows * inner
        for depth, count in divisions(lines):
            cost += count * (rows if depth < deep else rows * inner)
        return cost

    # -- reductions ------------------------------------------------------------------------------------

    def _reduce(self, node: Operation) -> None:
        values = self.values
        source = node["self"]
        shape = values.program.nodes[source].shape
        if int(product(shape)) != int(product(self.space.shape)):
            raise Mismatch(node.name)
        index = regrouped(self.flat, shape)
        dims = reduced(node, len(shape))
        kept = joined(digit for n, digits in enumerate(index) if n not in dims for digit in digits)
        inner = joined(digit for n, digits in enumerate(index) if n in dims for digit in digits)
        if kept != joined(self.row) or inner != joined(self.inner):
            raise Mismatch(node.name)
        type, start, update, clause = _rule(node, values, source, int(self.count))
        name = values.fresh(values.names[node.name])
        total = name if node.op not in ("aten.mean",) else values.fresh(f"{name}_sum")
        values.write(*[line.replace("@", total) for line in start])

        def body() -> None:
            value = values.at(source, index)
            values.write(*[line.replace("@", total) for line in update(value, inner)])

        clauses = f" reduction({clause} : {total})" if clause else ""
        parallel = self.spread and clause
        outer = f"parallel for{clauses}" if parallel else ""
        nest(values, self.inner_names, body, outer, f"simd{clauses}" if clause else "")
        found = Value(total, type, ATOM, self.row_depth)
        if node.op == "aten.mean":
            count = self.count.text
            if node["correction"]:
                count = f"({count} - {node['correction']})"
            elif self.count.factors:
                count = f"({count})"
            values.write(f"const {node.c_type} {name} = {total} / {count};")
            found = Value(name, node.c_type, ATOM, self.row_depth)
        if node.name in self.kept:
            values.write(stored(found, self.kept[node.name], self.row))
        values.locals[node.name] = Local(joined(self.row), found)


Update = Callable[[Value, Digits], list[str]]


def _rule(node: Operation, values: Values, source: str, count: int) -> tuple[str, list[str], Update, str]:
    """Type, first lines, lines for each element, and the clause of a reduction; @ is the total's name."""
    read = values.program.nodes[source].c_type
    type = node.c_type
    kind = node.op.split(".")[1]
    if kind in ("sum", "mean", "prod"):
        wide = "double" if type == "float" and count > MANY else type
        sign, first = ("*", "1") if kind == "prod" else ("+", "0")
        return wide, [f"{wide} @ = {first};"], lambda v, _: [f"@ {sign}= {converted(v, wide).text};"], sign
    if kind in ("any", "all"):
        sign, first = ("||", "false") if kind == "any" else ("&&", "true")
        return (
            type,
            [f"bool @ = {first};"],
            lambda v, _: [f"@ = @ {sign} {converted(v, 'bool').within(ATOM)};"],
            sign,
        )
    least = kind in ("amin", "argmin")
    sign = "<" if least else ">"
    if read in ("int64_t", "bool"):
        first = "INT64_MAX" if least else "INT64_MIN"
        read = "int64_t"
    else:
        first = "INFINITY" if least else "-INFINITY"
    if kind in ("argmax", "argmin"):
        return _place(read, first, sign)

    def update(value: Value, _: Digits) -> list[str]:
        value = converted(value, read)
        lines, x = _once(value, read)
        strict = f" || {x} != {x}" if kind != "top" and read != "int64_t" else ""
        return [*lines, f"@ = {x} {sign} @{strict} ? {x} : @;"]

    clause = ("min" if least else "max") if kind == "top" or read == "int64_t" else ""
    return read, [f"{read} @ = {first};"], update, clause


def _place(read: str, first: str, sign: str) -> tuple[str, list[str], Update, str]:
    def update(value: Value, inner: Digits) -> list[str]:
        lines, x = _once(converted(value, read), read)
        nan = f" || ({x} != {x} && @_value == @_value)" if read != "int64_t" else ""
        return [*lines, f"if ({x} {sign} @_value{nan}) {{", f"@_value = {x};", f"@ = {place(inner)};", "}"]

    return "int64_t", [f"{read} @_value = {first};", "int64_t @ = 0;"], update, ""


def _once(value: Value, type: str) -> tuple[list[str], str]:
    """A name for a value that is read several times."""
    if len(value.text) < 24:
        return [], value.within(ATOM)
    return [f"const {type} element = {value.text};"], "element"
