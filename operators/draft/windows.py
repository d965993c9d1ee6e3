"""Convolutions and pooling: a window slides over the last dimensions."""

from __future__ import annotations

from operators.draft.loops import Stage, loop, write
from operators.draft.operations import Operation, Ref
from operators.draft.pointwise import ATOM, Value
from operators.draft.sizes import Digits, Extent, joined, product, regrouped, variable
from operators.draft.values import Array, Local, Values, stored
from operators.draft.views import opaque

OUT = ("x", "y", "z")  # the innermost dimension is x
POOLS = (
    "aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices", "aten.max_pool1d", "aten.max_pool2d", "aten.avg_pool1d",
    "aten.avg_pool2d", "aten.avg_pool3d", "aten.max_pool3d",
)  # fmt: skip


class Window(Stage):
    """A convolution or a pooling; both share how a window moves."""

    def __init__(self, node: Operation) -> None:
        super().__init__([node.name])
        self.node = node

    def render(self, values: Values, kept: dict[str, Array]) -> list[str]:
        """One loop nest over images, channels and places."""
        writer = _Writer(self, values.again(), kept)
        if self.node.op != "aten.convolution":
            writer.pool()
        elif self.node["transposed"]:
            writer.transposed()
        else:
            writer.convolution()
        return writer.values.levels[0].lines


def several(value: object, count: int, default: int = 1) -> list[int]:
    """An argument that is one number or one a dimension."""
    found = value if isinstance(value, list) else [] if value is None else [value]
    if not found:
        return [default] * count
    return [int(number) for number in (found * count if len(found) == 1 else found)]


class _Writer:
    def __init__(self, stage: Window, values: Values, kept: dict[str, Array]) -> None:
        self.stage, self.node, self.values, self.kept = stage, stage.node, values, kept
        self.source = Ref(self.node["input"] if "input" in self.node.given else self.node["self"])
        self.shape = values.program.nodes[self.source].shape
        self.type = self.node.c_type

    # -- shared ----------------------------------------------------------------------------------------

    def _places(self, rank: int) -> list[str]:
        """Names of the output's dimensions, outermost first."""
        return [OUT[rank - 1 - n] for n in range(rank)]

    def _finish(self, digits: Digits, total: str, depth: int) -> None:
        flat = joined(digits)
        found = Value(total, self.type, ATOM, depth)
        self.values.locals[self.node.name] = Local(flat, found)
        if self.node.name in self.kept:
            self.values.write(stored(found, self.kept[self.node.name], flat))
        write(self.values, self.stage.writes, flat, product(self.node.shape))

    def _planes(self, extents: list[tuple[str, Extent]], lines: list[str]) -> None:
        """The outer loops, those of one element left out."""
        pragma = "#pragma omp parallel for" + (f" collapse({len(extents)})" if len(extents) > 1 else "")
        for n, (name, extent) in reversed(list(enumerate(extents))):
            lines = loop(name, extent, lines, *([pragma] if n == 0 else []))
        self.values.write(*lines)

    # -- convolution -----------------------------------------------------------------------------------

    def convolution(self) -> None:
        """Rows of outputs at a time, each tap added to all of them."""
        node, values = self.node, self.values
        values.tuned["WIDTH"] = "64;  // tune: 16 32 64 128"
        rank = len(self.shape) - 2
        weight = Ref(node["weight"])
        taps = values.program.nodes[weight].shape
        stride, padding, dilation = (
            several(node["stride"], rank), several(node["padding"], rank, 0), several(node["dilation"], rank)
        )  # fmt: skip
        images, channels, outs = node.shape[0], node.shape[1], node.shape[2:]
        names = self._places(rank)
        planes = [("image", images), ("channel", channels), *zip(_outs(names[:-1]), outs[:-1], strict=True)]
        planes = [plane for plane in planes[:2] if plane[1] != 1 or plane[1].factors] + planes[2:]
        at = {name: variable(name, extent, n + 1) for n, (name, extent) in enumerate(planes)}
        if not planes:
            values.enter()
        for _ in planes:
            values.enter()
        base = max(1, len(planes))
        image, channel = at.get("image", ()), at.get("channel", ())
        values.enter()  # first
        last = outs[-1]
        values.write(
            f"const int64_t end = first + WIDTH < {last.text} ? first + WIDTH : {last.text};",
            f"{self.type} total[WIDTH] = {{}};",
        )
        body = self._taps(weight, taps, image, channel, at, names, stride, padding, dilation, base + 1)
        values.write(*body)
        values.enter()
        x = variable("ox", last, base + 2)
        total: Value = Value("total[ox - first]", self.type, ATOM, base + 2)
        if isinstance(node["bias"], Ref):
            bias = values.at(node["bias"], (channel,))
            total = Value(f"total[ox - first] + {bias.within(1)}", self.type, 1, base + 2)
        digits = (*image, *channel, *(d for name in _outs(names[:-1]) for d in at[name]), *x)
        self._finish(digits, total.text if total.binds == ATOM else f"({total.text})", base + 2)
        values.write("for (int64_t ox = first; ox < end; ++ox) {", *values.leave(), "}")
        inside = values.leave()
        lines = [f"for (int64_t first = 0; first < {last.text}; first += WIDTH) {{", *inside, "}"]
        for _ in range(base - 1):
            lines = self.values.leave() + lines
        lines = self.values.leave() + lines
        if planes:
            self._planes(planes, lines)
        else:
            values.write(*lines)

    def _taps(
        self, weight: Ref, taps: tuple[Extent, ...], image: Digits, channel: Digits, at: dict[str, Digits],
        names: list[str], stride: list[int], padding: list[int], dilation: list[int], depth: int,
    ) -> list[str]:  # fmt: skip
        """The loops over input channels and taps of one tile."""
        node, values = self.node, self.values
        groups, inner = node["groups"], taps[1]
        values.enter()  # c
        c = variable("feature", inner, depth + 1)
        source = c
        if groups > 1:
            outs = node.shape[1].by(groups if isinstance(groups, Extent) else Extent(groups))
            group = f"channel / {outs.atom}" if outs > 1 else "channel"
            text = f"({group} * {inner.text} + feature)" if inner != 1 else f"({group})" if " " in group else group
            source = opaque(text, self.shape[1], depth + 1)
        index: list[Digits] = [image, source]
        tap: list[Digits] = [channel, c]
        rank = len(names)
        for n in range(rank):
            values.enter()
            name, d = f"k{names[n]}", depth + 2 + n
            tap.append(variable(name, taps[2 + n], d))
            shift = _sum(_times(name, dilation[n]) if taps[2 + n] != 1 else "0", -padding[n])
            if n < rank - 1:
                values.write(f"const int64_t i{names[n]} = {_sum(_times('o' + names[n], stride[n]), shift)};")
                index.append(opaque(f"i{names[n]}", self.shape[2 + n], d))
                values.write(f"if (i{names[n]} < 0 || i{names[n]} >= {self.shape[2 + n].text}) {{", "continue;", "}")
            else:
                wide = self.shape[-1]
                values.write(
                    f"const int64_t shift = {shift};",
                    f"const int64_t low = at_least(first, ceil_div(-shift, {stride[n]}));",
                    f"const int64_t high = at_most(end, ceil_div({wide.text} - shift, {stride[n]}));",
                )
                index.append(opaque(f"({_times('ox', stride[n])} + shift)", wide, d + 1))
        values.enter()
        factor, value = values.at(weight, tuple(tap)), values.at(self.source, tuple(index))
        values.write(f"total[ox - first] += {factor.within(2)} * {value.within(2)};")
        lines = ["#pragma omp simd", "for (int64_t ox = low; ox < high; ++ox) {", *values.leave(), "}"]
        for n in reversed(range(rank)):
            lines = loop(f"k{names[n]}", taps[2 + n], [*values.leave(), *lines])
        return loop("feature", inner, [*values.leave(), *lines])

    def transposed(self) -> None:
        """Each output gathers the inputs that reach it."""
        node, values = self.node, self.values
        rank = len(self.shape) - 2
        weight = Ref(node["weight"])
        taps = values.program.nodes[weight].shape
        stride, padding, dilation = (
            several(node["stride"], rank), several(node["padding"], rank, 0), several(node["dilation"], rank)
        )  # fmt: skip
        names = self._places(rank)
        groups = node["groups"]
        per_group, inner = taps[1], self.shape[1].by(groups if isinstance(groups, Extent) else Extent(groups))
        dims = [("image", node.shape[0]), ("channel", node.shape[1]), *zip(_outs(names), node.shape[2:], strict=True)]
        at = [variable(name, extent, n + 1) for n, (name, extent) in enumerate(dims)]
        for _ in dims:
            values.enter()
        d = len(dims)
        values.write(f"{self.type} total = 0;")
        values.enter()  # c
        c = variable("feature", inner, d + 1)
        group, rest = f"channel / {per_group.atom}", f"channel % {per_group.atom}"
        if groups == 1:
            source, out = c, at[1]
        else:
            source = opaque(f"({group} * {inner.atom} + feature)", self.shape[1], d + 1)
            out = opaque(f"({rest})", per_group, 2) if per_group != 1 else ()
        index, tap = [at[0], source], [source, out]
        for n in range(rank):
            values.enter()
            name, extent = f"k{names[n]}", self.shape[2 + n]
            tap.append(variable(name, taps[2 + n], d + 2 + n))
            values.write(
                f"const int64_t far_{names[n]} = o{names[n]} + {padding[n]} - {name} * {dilation[n]};",
                f"if (far_{names[n]} < 0 || far_{names[n]} % {stride[n]} != 0 || "
                f"far_{names[n]} / {stride[n]} >= {extent.text}) {{", "continue;", "}",
            )  # fmt: skip
            place = f"(far_{names[n]} / {stride[n]})" if stride[n] != 1 else f"far_{names[n]}"
            index.append(opaque(place, extent, d + 2 + n) if extent != 1 else ())
        factor, value = values.at(weight, tuple(tap)), values.at(self.source, tuple(index))
        values.write(f"total += {factor.within(2)} * {value.within(2)};")
        lines: list[str] = []
        for n in reversed(range(rank)):
            lines = loop(f"k{names[n]}", taps[2 + n], [*values.leave(), *lines])
        lines = loop("feature", inner, [*values.leave(), *lines])
        values.write(*lines)
        total = "total"
        if isinstance(node["bias"], Ref):
            total = f"(total + {values.at(node['bias'], (at[1],)).within(1)})"
        self._finish(tuple(digit for digits in at for digit in digits), total, d)
        self._close(dims)

    def _close(self, dims: list[tuple[str, Extent]]) -> None:
        """Leave the loops over all places, parallel over the outer two."""
        values = self.values
        lines: list[str] = []
        for n in reversed(range(len(dims))):
            found = values.leave()
            pragma = ["#pragma omp parallel for collapse(2)"] if n == 0 else []
            lines = loop(*dims[n], [*found, *lines], *pragma)
        values.write(*lines)

    # -- pooling ---------------------------------------------------------------------------------------

    def pool(self) -> None:
        """The largest, or the mean, of each window."""
        node, values = self.node, self.values
        rank = int(node.op.split("pool")[1][0])
        kernel = several(node["kernel_size"], rank)
        stride = several(node["stride"], rank) if node["stride"] not in (None, []) else kernel
        padding, dilation = several(node["padding"], rank, 0), several(node["dilation"], rank)
        names, mean = self._places(rank), "avg" in node.op
        lead = self.node.shape[:-rank]
        dims = [("plane", product(lead)), *zip(_outs(names), node.shape[len(lead) :], strict=True)]
        at = [variable(name, extent, n + 1) for n, (name, extent) in enumerate(dims)]
        for _ in dims:
            values.enter()
        d = len(dims)
        values.write(f"{self.type} total = {'0' if mean else '-INFINITY' if self.type != 'int64_t' else 'INT64_MIN'};")
        index: list[Digits] = list(regrouped(at[0], lead))
        for n in range(rank):
            values.enter()
            extent, name = self.shape[len(lead) + n], names[n]
            moved = _sum(_times(f"k{name}", dilation[n]) if kernel[n] != 1 else "0", -padding[n])
            values.write(f"const int64_t i{name} = {_sum(_times('o' + name, stride[n]), moved)};")
            values.write(f"if (i{name} < 0 || i{name} >= {extent.text}) {{", "continue;", "}")
            index.append(opaque(f"i{name}", extent, d + 1 + n) if extent != 1 else ())
        value = values.at(self.source, tuple(index))
        if mean:
            values.write(f"total += {value.text};")
        else:
            values.write(f"const {self.type} element = {value.text};")
            nan = " || element != element" if self.type != "int64_t" else ""
            values.write(f"total = element > total{nan} ? element : total;")
        lines: list[str] = []
        for n in reversed(range(rank)):
            lines = loop(f"k{names[n]}", Extent(kernel[n]), [*values.leave(), *lines])
        values.write(*lines)
        total = "total"
        if mean:
            total = f"(total / {self._divisor(kernel, stride, padding, names, len(lead))})"
        self._finish(tuple(digit for digits in at for digit in digits), total, d)
        self._close(dims)

    def _divisor(self, kernel: list[int], stride: list[int], padding: list[int], names: list[str], lead: int) -> str:
        """How many elements a mean is taken over."""
        node = self.node
        if node["divisor_override"]:
            return str(node["divisor_override"])
        if not any(padding) and not node["ceil_mode"]:
            return str(product(map(Extent, kernel)).text)
        for n, name in enumerate(names):
            extent = self.shape[lead + n].atom
            first = _sum(_times('o' + name, stride[n]), -padding[n])
            beyond = f"{extent} + {padding[n]}" if node["count_include_pad"] is not False else extent
            begin = first if node["count_include_pad"] is not False else f"at_least({first}, 0)"
            self.values.write(f"const int64_t count_{name} = at_most({_sum(first, kernel[n])}, {beyond}) - ({begin});")
        return "(" + " * ".join(f"count_{name}" for name in names) + ")" if len(names) > 1 else f"count_{names[0]}"


def _outs(names: list[str]) -> list[str]:
    return [f"o{name}" for name in names]


def _times(name: str, factor: int) -> str:
    return name if factor == 1 else f"{name} * {factor}"


def _sum(text: str, other: int | str) -> str:
    """Two terms, zeros left out."""
    if isinstance(other, str):
        if other == "0":
            return text
        return f"{text} - {other[1:]}" if other.startswith("-") and " " not in other else f"{text} + {other}"
    if text == "0":
        return str(other)
    return text if other == 0 else f"{text} {'+' if other > 0 else '-'} {abs(other)}"
