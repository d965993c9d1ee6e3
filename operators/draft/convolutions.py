"""Convolutions, forward and transposed, with groups, in one to three dimensions."""

from __future__ import annotations

from operators.draft.expressions import ATOM, PRODUCT, SUM, Value
from operators.draft.loops import NodeStage, loop
from operators.draft.operations import Ref
from operators.draft.sizes import Digits, Extent, bracketed, variable
from operators.draft.values import Array, Values
from operators.draft.views import opaque
from operators.draft.windows import Slide, flattened, leave_places, leave_taps, times


class Convolution(NodeStage):
    """One convolution, with its bias."""

    def render(self, values: Values, kept: dict[str, Array]) -> list[str]:
        """One loop nest over images, channels and places."""
        writer = _Writer(self, values.again(), kept)
        if self.node["transposed"]:
            writer.transposed()
        else:
            writer.forward()
        return writer.values.levels[0].lines


class _Writer:
    def __init__(self, stage: Convolution, values: Values, kept: dict[str, Array]) -> None:
        self.stage, self.node, self.values, self.kept = stage, stage.node, values, kept
        nodes = values.program.nodes
        self.source, self.weight = Ref(self.node["input"]), Ref(self.node["weight"])
        self.shape, self.taps = nodes[self.source].shape, nodes[self.weight].shape
        self.rank = len(self.shape) - 2
        self.slide = Slide.of(self.node, self.rank)
        self.groups = Extent(1) if self.node["groups"] == 1 else _extent(self.node["groups"])
        outs = [f"o{axis}" for axis in self.slide.axes]
        self.dims = [
            ("image", self.node.shape[0]),
            ("channel", self.node.shape[1]),
            *zip(outs, self.node.shape[2:], strict=True),
        ]
        self.at = [variable(name, extent, n + 1) for n, (name, extent) in enumerate(self.dims)]

    def _biased(self, total: str) -> str:
        """The total with its channel's bias."""
        bias = self.node["bias"]
        return (
            f"({total} + {self.values.at(bias, (self.at[1],)).within(SUM)})"
            if isinstance(bias, Ref)
            else total
        )

    def _finish(self, digits: Digits, total: str, depth: int) -> None:
        found = Value(self._biased(total), self.node.c_type, ATOM, depth)
        self.stage.finish(self.values, self.kept, digits, found)

    # -- forward: rows of outputs at a time, each tap added to all of them ---------------------------------

    def forward(self) -> None:
        """A tile of the last dimension is kept while channels and taps pass by."""
        values = self.values
        values.tuned["WIDTH"] = "64;  // tune: 16 32 64 128"
        outer, (name, last) = self.dims[:-1], self.dims[-1]
        depth = len(outer) + 1  # in a tile
        for _ in range(depth):
            values.enter()
        values.write(
            f"const int64_t end = first + WIDTH < {last.text} ? first + WIDTH : {last.text};",
            f"{self.node.c_type} total[WIDTH] = {{}};",
        )
        values.write(*self._passing(depth))
        values.enter()
        place = variable(name, last, depth + 1)
        self._finish((*flattened(self.at[:-1]), *place), "total[ox - first]", depth + 1)
        values.write(f"for (int64_t {name} = first; {name} < end; ++{name}) {{", *values.leave(), "}")
        tile = values.leave()
        lines = [f"for (int64_t first = 0; first < {last.text}; first += WIDTH) {{", *tile, "}"]
        for _ in outer:  # nothing may stand between the collapsed loops
            lines = values.leave() + lines
        for n in reversed(range(len(outer))):
            pragma = [f"#pragma omp parallel for collapse({len(outer)})"] if n == 0 else []
            lines = loop(*outer[n], lines, *pragma)
        values.write(*lines)

    def _passing(self, depth: int) -> list[str]:
        """The loops over input channels and taps of one tile."""
        values, slide, taps = self.values, self.slide, self.taps[2:]
        values.enter()
        feature = variable("feature", self.taps[1], depth + 1)
        index: list[Digits] = [self.at[0], self._source_channel(feature, depth + 1)]
        tap: list[Digits] = [self.at[1], feature]
        for n in range(self.rank):
            values.enter()
            deep = depth + 2 + n
            tap.append(variable(f"k{slide.axes[n]}", taps[n], deep))
            extent = self.shape[2 + n]
            if n < self.rank - 1:
                index.append(opaque(slide.inside(values, n, taps[n], extent), extent, deep))
                continue
            stride = slide.stride[n]
            values.write(
                f"const int64_t shift = {slide.shift(n, taps[n])};",
                f"const int64_t low = at_least(first, ceil_div(-shift, {stride}));",
                f"const int64_t high = at_most(end, ceil_div({extent.text} - shift, {stride}));",
            )
            index.append(opaque(f"({times('ox', stride)} + shift)", extent, deep + 1))
        values.enter()
        factor, value = values.at(self.weight, tuple(tap)), values.at(self.source, tuple(index))
        values.write(f"total[ox - first] += {factor.within(PRODUCT)} * {value.within(PRODUCT)};")
        lines = ["#pragma omp simd", "for (int64_t ox = low; ox < high; ++ox) {", *values.leave(), "}"]
        lines = leave_taps(values, slide, list(taps), lines)
        return loop("feature", self.taps[1], [*values.leave(), *lines])

    def _source_channel(self, feature: Digits, depth: int) -> Digits:
        if self.groups == 1 and not self.groups.factors:
            return feature
        share, inner = self.node.shape[1].by(self.groups), self.taps[1]
        group = f"channel / {share.atom}" if share != 1 else "channel"
        text = f"{group} * {inner.atom} + feature" if inner != 1 else group
        return opaque(bracketed(text), self.shape[1], depth)

    # -- transposed: each output gathers the inputs that reach it ------------------------------------------

    def transposed(self) -> None:
        """An input reaches an output where the stride divides what lies between them."""
        values, slide = self.values, self.slide
        depth = len(self.dims)
        for _ in self.dims:
            values.enter()
        values.write(f"{self.node.c_type} total = 0;")
        values.enter()
        share, inner = self.taps[1], self.shape[1].by(self.groups)
        source, channel = variable("feature", inner, depth + 1), self.at[1]
        if self.groups != 1:
            source = opaque(f"(channel / {share.atom} * {inner.atom} + feature)", self.shape[1], depth + 1)
            channel = opaque(f"(channel % {share.atom})", share, 2) if share != 1 else ()
        index, tap = [self.at[0], source], [source, channel]
        for n, axis in enumerate(slide.axes):
            values.enter()
            deep, extent, stride = depth + 2 + n, self.shape[2 + n], slide.stride[n]
            tap.append(variable(f"k{axis}", self.taps[2 + n], deep))
            far, tap_shift = f"far_{axis}", times(f"k{axis}", slide.dilation[n])
            values.write(
                f"const int64_t {far} = o{axis} + {slide.padding[n]} - {tap_shift};",
                f"if ({far} < 0 || {far} % {stride} != 0 || {far} / {stride} >= {extent.text}) {{",
                "continue;",
                "}",
            )
            place = f"({far} / {stride})" if stride != 1 else far
            index.append(opaque(place, extent, deep) if extent != 1 or extent.factors else ())
        factor, value = values.at(self.weight, tuple(tap)), values.at(self.source, tuple(index))
        values.write(f"total += {factor.within(PRODUCT)} * {value.within(PRODUCT)};")
        lines = leave_taps(values, slide, list(self.taps[2:]), [])
        values.write(*loop("feature", inner, [*values.leave(), *lines]))
        self._finish(flattened(self.at), "total", depth)
        leave_places(values, self.dims)


def _extent(number: int) -> Extent:
    return number if isinstance(number, Extent) else Extent(number)
