"""Running sums and products: rows in parallel, along a row in order."""

from __future__ import annotations

from operators.draft.expressions import ATOM, Value, converted
from operators.draft.loops import NodeStage, loop
from operators.draft.sizes import Digits, product, regrouped, variable
from operators.draft.values import Array, Values

SCANS = {"aten.cumsum": "+=", "aten.cumprod": "*="}


class Scan(NodeStage):
    """A cumsum or a cumprod."""

    def render(self, values: Values, kept: dict[str, Array]) -> list[str]:
        """A loop over rows and one along them."""
        node, values = self.node, values.again()
        axis = node["dim"] % len(node.shape)
        others = [extent for n, extent in enumerate(node.shape) if n != axis]
        row = variable("row", product(others), 1)
        index: list[Digits] = list(regrouped(row, others))
        index.insert(axis, variable("i", node.shape[axis], 2))
        values.enter()
        values.write(f"{node.c_type} total = {'0' if node.op == 'aten.cumsum' else '1'};")
        values.enter()
        value = converted(values.at(node["self"], tuple(index)), node.c_type)
        values.write(f"total {SCANS[node.op]} {value.text};")
        digits = tuple(digit for part in index for digit in part)
        self.finish(values, kept, digits, Value("total", node.c_type, ATOM, 2))
        inner = loop("i", node.shape[axis], values.leave())
        lines = [*values.leave(), *inner]
        pragma = "#pragma omp parallel for"
        values.write(*loop("row", product(others), lines, pragma))
        return values.levels[0].lines
