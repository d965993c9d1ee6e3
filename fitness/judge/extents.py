"""Sizes in terms of the arguments' shapes, found by comparing traces of several cases.

A number that is the same in all cases is a number; one that always equals an extent of an argument, or a simple
expression of such, is read from ``shapes``. Nothing is proved: the gate tries the kernel at all cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from fitness.card import Case
from populations.graph import Extent, Graph, Node

Values = tuple[int, ...]  # one number a case


def unified(graphs: Sequence[Graph], cases: Sequence[Case]) -> Graph:
    """The first graph, its sizes rewritten in terms of shapes where alike graphs explain them.

    Args:
        graphs: the given case's graph first.
        cases: the case of each graph.
    """
    first = graphs[0]
    alike = [n for n, graph in enumerate(graphs) if _outline(graph) == _outline(first)]
    graphs, cases = [graphs[n] for n in alike], [cases[n] for n in alike]
    known = _Known(cases)
    nodes: list[Node] = []
    for versions in zip(*(graph.nodes for graph in graphs), strict=True):
        sizes = []
        for extents in zip(*(node.shape for node in versions), strict=True):
            text = known.text(extents)
            if text is None:
                return first
            sizes.append(text)
        start = _start(versions, known)
        nodes.append(replace(versions[0], sizes=tuple(sizes), arguments=versions[0].arguments | start))
    return Graph(tuple(nodes), first.outputs, known.used())


def _start(versions: Sequence[Node], known: _Known) -> dict[str, str]:
    """The start of a slice, where it varies: ``<4: n0>``."""
    texts = [node.arguments.get("start", "None") for node in versions]
    if len(set(texts)) == 1 or not all(text.isdigit() for text in texts):
        return {}
    text = known.text(tuple(int(text) for text in texts))
    return {"start": f"<{texts[0]}: {text}>"} if text else {}


def _outline(graph: Graph) -> list[object]:
    """What two graphs must have in common: everything but sizes, and arguments that follow from sizes."""
    free = {"start", "size", "end", "length", "normalized_shape", "split_size", "split_sizes"}
    return [
        (node.name, node.op, len(node.shape), node.dtype)
        + tuple((name, text) for name, text in node.arguments.items() if name not in free)
        for node in graph.nodes
    ]


class _Known:
    """What numbers are called."""

    def __init__(self, cases: Sequence[Case]) -> None:
        rows = [[extent for spec in case.arguments for extent in spec.shape] for case in cases]
        meanings = [
            f"{spec.name}, dimension {n}" for spec in cases[0].arguments for n in range(len(spec.shape))
        ]
        self._extents: dict[Values, Extent] = {}
        for position, values in enumerate(zip(*rows, strict=True)):
            if len(set(values)) > 1:
                name = f"n{len(self._extents)}"
                self._extents.setdefault(values, Extent(name, position, meanings[position]))
        self._texts: dict[Values, str | None] = {}

    def text(self, values: Values) -> str | None:
        """A C expression with these values, or None."""
        if len(set(values)) == 1:
            return str(values[0])
        if values not in self._texts:
            self._texts[values] = next(self._expressions(values), None)
        return self._texts[values]

    def used(self) -> tuple[Extent, ...]:
        """All extents that vary."""
        return tuple(self._extents.values())

    def _expressions(self, wanted: Values) -> Iterator[str]:
        names = {values: extent.name for values, extent in self._extents.items()}
        if wanted in names:
            yield names[wanted]
        for count in (1, 2, 3):
            for chosen in combinations(names, min(count, len(names))):
                product = tuple(_product(numbers) for numbers in zip(*chosen, strict=True))
                words = " * ".join(names[values] for values in chosen)
                if product == wanted:
                    yield words
                factor, rest = divmod(wanted[0], product[0])
                if factor > 1 and not rest and _is(wanted, product, lambda p, f=factor: p * f):
                    yield f"{words} * {factor}"
        for values, name in names.items():
            for step in range(1, 5):
                shift = wanted[0] * step - values[0]
                for c in range(shift, shift + step):
                    if abs(c) <= 16 and _is(wanted, values, lambda v, c=c, step=step: (v + c) // step):
                        sum_ = f"({name} {'+' if c >= 0 else '-'} {abs(c)})" if c else name
                        yield sum_ if step == 1 else f"({sum_} / {step})"


def _is(wanted: Values, values: Values, rule: Callable[[int], int]) -> bool:
    return all(rule(value) == want for value, want in zip(values, wanted, strict=True))


def _product(numbers: Sequence[int]) -> int:
    found = 1
    for number in numbers:
        found *= number
    return found
