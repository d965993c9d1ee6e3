"""Pooling: the largest or the mean of each window."""

from __future__ import annotations

from operators.draft.expressions import ATOM, Value
from operators.draft.loops import NodeStage
from operators.draft.sizes import Digits, Extent, product, regrouped, variable
from operators.draft.values import Array, Values
from operators.draft.views import opaque
from operators.draft.windows import Slide, flattened, leave_places, leave_taps, plus, several, times

POOLS = (
    "aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d", "aten.max_pool2d_with_indices",
    "aten.max_pool3d_with_indices", "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d",
)  # fmt: skip


class Pool(NodeStage):
    """One pooling."""

    def render(self, values: Values, kept: dict[str, Array]) -> list[str]:
        """Loops over planes and places, and within them over the window."""
        node, values = self.node, values.again()
        rank = int(node.op.split("pool")[1][0])
        kernel = several(node["kernel_size"], rank)
        slide, taps = Slide.of(node, rank, kernel), [Extent(number) for number in kernel]
        source = node.refs()[0]
        extents = values.program.nodes[source].shape[-rank:]
        lead, places = node.shape[:-rank], node.shape[-rank:]
        outs = [f"o{axis}" for axis in slide.axes]
        dims = [("plane", product(lead)), *zip(outs, places, strict=True)]
        at = [variable(name, extent, n + 1) for n, (name, extent) in enumerate(dims)]
        mean, type = "avg" in node.op, node.c_type
        for _ in dims:
            values.enter()
        least = "INT64_MIN" if type == "int64_t" else "-INFINITY"
        values.write(f"{type} total = {'0' if mean else least};")
        index: list[Digits] = list(regrouped(at[0], lead))
        for n in range(rank):
            values.enter()
            name = slide.inside(values, n, taps[n], extents[n])
            index.append(opaque(name, extents[n], len(dims) + 1 + n) if extents[n] != 1 else ())
        element = values.at(source, tuple(index))
        values.write(*([f"total += {element.text};"] if mean else _larger(element)))
        values.write(*leave_taps(values, slide, taps, []))
        total = f"(total / {self._count(values, slide, kernel, extents)})" if mean else "total"
        self.finish(values, kept, flattened(at), Value(total, type, ATOM, len(dims)))
        leave_places(values, dims)
        return values.levels[0].lines

    def _count(self, values: Values, slide: Slide, kernel: list[int], extents: tuple[Extent, ...]) -> str:
        """How many elements a mean is taken over."""
        node = self.node
        if node["divisor_override"]:
            return str(node["divisor_override"])
        if not any(slide.padding) and not node["ceil_mode"]:
            return product(map(Extent, kernel)).text
        padded = node["count_include_pad"] is not False
        for n, axis in enumerate(slide.axes):
            first = plus(times(f"o{axis}", slide.stride[n]), -slide.padding[n])
            begin, end = first, extents[n].atom
            if padded:
                end = plus(end, slide.padding[n])
            else:
                begin = f"at_least({first}, 0)"
            values.write(
                f"const int64_t count_{axis} = at_most({plus(first, kernel[n])}, {end}) - ({begin});"
            )
        return f"({' * '.join(f'count_{axis}' for axis in slide.axes)})"


def _larger(element: Value) -> list[str]:
    nan = " || element != element" if element.type != "int64_t" else ""
    return [
        f"const {element.type} element = {element.text};",
        f"total = element > total{nan} ? element : total;",
    ]
