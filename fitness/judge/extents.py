"""Sizes in terms of the arguments' shapes, found by comparing traces of several cases.

A number that is the same in all cases is a number; one that always equals an extent of an argument, or a
simple expression of such, is read from ``shapes``. Nothing is proved: the gate tries the kernel at all cases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from fitness.card import Case
from populations.graph import Extent, Graph, Node

Values = tuple[int, ...]  # one number a case
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# Arguments that follow from the shapes of what the operation makes.
FOLLOWING = {"size", "end", "length", "normalized_shape", "split_size", "split_sizes", "stride_of_view"}
# Numbers that are no whole ones but powers of such.
POWERS = {
    -1: "1.0 / {}",
    2: "sqrt(double({}))",
    -2: "1.0 / sqrt(double({}))",
    -4: "1.0 / sqrt(sqrt(double({})))",
}


class _Unlike(Exception):
    """Two traces that no common text describes."""


def unified(graphs: Sequence[Graph], cases: Sequence[Case]) -> Graph:
    """The first graph, its sizes rewritten in terms of shapes so that they fit as many cases as possible.

    Args:
        graphs: the given case's graph first.
        cases: the case of each graph.
    """
    kept = [0]
    found = replace(graphs[0], cases=(cases[0].name,))
    for n in range(1, len(graphs)):
        try:
            found = _common([graphs[k] for k in [*kept, n]], [cases[k] for k in [*kept, n]])
        except _Unlike:
            continue
        kept.append(n)
    return found


def _common(graphs: Sequence[Graph], cases: Sequence[Case]) -> Graph:
    known = _Known(cases)
    first = graphs[0]
    if any(len(graph.nodes) != len(first.nodes) or graph.outputs != first.outputs for graph in graphs):
        raise _Unlike
    nodes = tuple(_node(versions, known) for versions in zip(*(graph.nodes for graph in graphs), strict=True))
    return Graph(nodes, first.outputs, known.used(), tuple(case.name for case in cases))


def _node(versions: Sequence[Node], known: _Known) -> Node:
    first = versions[0]
    if any(_outline(node) != _outline(first) for node in versions):
        raise _Unlike
    sizes = tuple(known.text(extents) for extents in zip(*(node.shape for node in versions), strict=True))
    arguments = dict(first.arguments)
    for name in arguments.keys() - FOLLOWING:
        texts = [node.arguments[name] for node in versions]
        if len(set(texts)) > 1:
            if not all(NUMBER.fullmatch(text) for text in texts):
                raise _Unlike
            arguments[name] = f"<{texts[0]}: {known.number([float(text) for text in texts])}>"
    return replace(first, sizes=sizes, arguments=arguments)


def _outline(node: Node) -> tuple[object, ...]:
    return node.name, node.op, len(node.shape), node.dtype, tuple(node.arguments)


class _Known:
    """What numbers are called."""

    def __init__(self, cases: Sequence[Case]) -> None:
        rows = [[extent for spec in case.arguments for extent in spec.shape] for case in cases]
        meanings = [
            f"{spec.name}, dimension {n}" for spec in cases[0].arguments for n in range(len(spec.shape))
        ]
        self._extents: dict[Values, Extent] = {}
        for position, values in enumerate(zip(*rows, strict=True)):
            if len(set(values)) > 1 and values not in self._extents:
                self._extents[values] = Extent(f"n{len(self._extents)}", position, meanings[position])
        self._texts: dict[Values, str | None] = {}

    def text(self, values: Values) -> str:
        """A C expression with these values.

        Raises:
            _Unlike: there is none.
        """
        if len(set(values)) == 1:
            return str(values[0])
        if values not in self._texts:
            self._texts[values] = next(self._expressions(values), None)
        found = self._texts[values]
        if found is None:
            raise _Unlike
        return found

    def number(self, values: Sequence[float]) -> str:
        """The same for any numbers."""
        if all(value.is_integer() for value in values):
            return self.text(tuple(int(value) for value in values))
        for power, form in POWERS.items():
            if min(values) <= 0:
                break
            whole = [value**power for value in values]
            if all(math.isclose(value, round(value), rel_tol=1e-6) for value in whole):
                return form.format(self.text(tuple(round(value) for value in whole)))
        raise _Unlike

    def used(self) -> tuple[Extent, ...]:
        """All extents that vary."""
        return tuple(self._extents.values())

    def _expressions(self, wanted: Values) -> Iterator[str]:
        names = {values: extent.name for values, extent in self._extents.items()}
        if wanted in names:
            yield names[wanted]
        for count in range(1, min(3, len(names)) + 1):
            for chosen in combinations(names, count):
                product = tuple(math.prod(numbers) for numbers in zip(*chosen, strict=True))
                words = " * ".join(names[values] for values in chosen)
                if product == wanted:
                    yield words
                factor = wanted[0] // product[0]
                if factor > 1 and tuple(number * factor for number in product) == wanted:
                    yield f"{words} * {factor}"
        for values, name in names.items():
            for step in range(1, 5):
                shift = wanted[0] * step - values[0]
                for c in range(shift, shift + step):
                    if abs(c) <= 16 and tuple((value + c) // step for value in values) == wanted:
                        moved = f"({name} {'+' if c >= 0 else '-'} {abs(c)})" if c else name
                        yield moved if step == 1 else f"({moved} / {step})"
            quotient = values[0] // max(1, wanted[0])
            if quotient > 4 and tuple(value // quotient for value in values) == wanted:
                yield f"({name} / {quotient})"
