"""Matrix products: panels of columns packed once, blocks of rows over them; or plain dot products.

With packed panels it does not matter how the second operand lies in memory.
"""

from __future__ import annotations

from operators.draft.expressions import ATOM, Value
from operators.draft.loops import NodeStage, loop, nest
from operators.draft.sizes import Digits, Extent, Index, joined, product, regrouped, variable
from operators.draft.values import Array, Values
from operators.draft.views import VIEWS, opaque

FEW_ROWS = 4
FEW_COLUMNS = 8


class Product(NodeStage):
    """``self @ mat2``, batched or not."""

    def render(self, values: Values, kept: dict[str, Array]) -> list[str]:
        """Dot products where rows or columns are few, packed panels elsewhere."""
        *_, m, n = self.node.shape
        k = values.program.nodes[self.node["self"]].shape[-1]
        writer = _Writer(self, values.again(), kept, m, n, k)
        if n < FEW_COLUMNS or (m < FEW_ROWS and writer.second_lies_along_k()):
            writer.dots()
        else:
            writer.panels()
        return writer.values.levels[0].lines


class _Writer:
    def __init__(
        self, stage: Product, values: Values, kept: dict[str, Array], m: Extent, n: Extent, k: Extent
    ) -> None:
        self.stage, self.node, self.values, self.kept = stage, stage.node, values, kept
        self.m, self.n, self.k = m, n, k
        self.batches = self.node.shape[:-2]
        self.batch = variable("batch", product(self.batches), 1)
        self.type = self.node.c_type

    def _first(self, row: Digits, k: Digits) -> Value:
        return self.values.at(self.node["self"], self._index(row, k))

    def _second(self, k: Digits, column: Digits) -> Value:
        return self.values.at(self.node["mat2"], self._index(k, column))

    def _index(self, *last: Digits) -> Index:
        return (*regrouped(self.batch, self.batches), *last)

    def _finish(self, row: Digits, column: Digits, total: str, depth: int) -> None:
        """The product's element is known."""
        found = Value(total, self.type, ATOM, depth)
        self.stage.finish(self.values, self.kept, (*self.batch, *row, *column), found)

    def second_lies_along_k(self) -> bool:
        """Whether neighbours in k are neighbours in memory."""
        name, index = (
            str(self.node["mat2"]),
            self._index(variable("k", self.k, 3), variable("column", self.n, 2)),
        )
        nodes = self.values.program.nodes
        while name not in self.values.arrays and nodes[name].op in VIEWS:
            source = nodes[name].refs()[0]
            index = VIEWS[nodes[name].op](nodes[name], nodes[source].shape, index)
            name = source
        flat = joined(digit for digits in index for digit in digits)
        return bool(flat) and flat[-1].whole == "k"

    def dots(self) -> None:
        values = self.values
        depth = 0
        names: list[tuple[str, Extent]] = []
        for name, extent in (("batch", product(self.batches)), ("row", self.m), ("column", self.n)):
            if extent != 1 or extent.factors or name == "column":
                names.append((name, extent))
        at = {name: variable(name, extent, depth + 1 + i) for i, (name, extent) in enumerate(names)}
        self.batch = at.get("batch", ())
        row, column = at.get("row", ()), at["column"]

        def body() -> None:
            values.write(f"{self.type} total = 0;")
            k = variable("k", self.k, len(names) + 1)

            def step() -> None:
                a, b = self._first(row, k), self._second(k, column)
                values.write(f"total += {a.within(2)} * {b.within(2)};")

            nest(values, [("k", self.k)], step, "", "simd reduction(+ : total)")
            self._finish(row, column, "total", len(names))

        nest(values, names, body, "parallel for", collapse=len(names) > 2)

    def panels(self) -> None:
        values, type = self.values, self.type
        values.tuned["ROWS"] = "4;  // tune: 1 2 4 6 8"
        values.tuned["COLUMNS"] = "32;  // tune: 8 16 32 64"
        n, k = self.n, self.k
        for _ in range(2):  # batch, first
            values.enter()
        values.write(
            f"const int64_t width = {n.text} - first < COLUMNS ? {n.text} - first : COLUMNS;",
            f"{type}* panel = static_cast<{type}*>(malloc(sizeof({type}) * COLUMNS * {k.atom}));",
        )
        self._pack()
        self._blocks()
        values.write("free(panel);")
        inside = values.leave()
        panels = f"for (int64_t first = 0; first < {n.text}; first += COLUMNS) {{"
        outside = values.leave()
        if self.batch:
            pragma = "#pragma omp parallel for" + ("" if outside else " collapse(2)")
            lines = loop("batch", product(self.batches), [*outside, panels, *inside, "}"], pragma)
        else:
            lines = [*outside, "#pragma omp parallel for", panels, *inside, "}"]
        values.write(*lines)

    def _pack(self) -> None:
        values = self.values
        row = variable("k", self.k, 3)
        values.enter()
        values.enter()
        index = self._index(row, opaque("(first + j)", self.n, 4))
        value = values.guarded(self.node["mat2"], index)
        values.write(f"panel[k * COLUMNS + j] = j < width ? {value.within(1)} : 0;")
        inner = ["for (int64_t j = 0; j < COLUMNS; ++j) {", *values.leave(), "}"]
        values.write(*loop("k", self.k, [*values.leave(), *inner]))

    def _blocks(self) -> None:
        values, type, m = self.values, self.type, self.m
        values.enter()  # start
        values.write(
            f"const int64_t height = {m.text} - start < ROWS ? {m.text} - start : ROWS;",
            f"{type} total[ROWS][COLUMNS] = {{}};",
        )
        values.enter()  # k
        values.enter()  # r
        values.write("const int64_t row = r < height ? start + r : start;")
        a = self._first(variable("row", m, 5), variable("k", self.k, 4))
        values.write(
            f"const {type} left = {a.text};",
            "#pragma omp simd",
            "for (int64_t j = 0; j < COLUMNS; ++j) {",
            "total[r][j] += left * panel[k * COLUMNS + j];",
            "}",
        )
        inner = ["for (int64_t r = 0; r < ROWS; ++r) {", *values.leave(), "}"]
        values.write(*loop("k", self.k, [*values.leave(), *inner]))
        values.enter()
        values.write("const int64_t row = start + r;")
        values.enter()
        values.write("const int64_t column = first + j;")
        self._finish(variable("row", m, 4), variable("column", self.n, 5), "total[r][j]", 5)
        inner = ["for (int64_t j = 0; j < width; ++j) {", *values.leave(), "}"]
        rows = ["for (int64_t r = 0; r < height; ++r) {", *values.leave(), *inner, "}"]
        values.write(*rows)
        values.write(f"for (int64_t start = 0; start < {m.text}; start += ROWS) {{", *values.leave(), "}")
