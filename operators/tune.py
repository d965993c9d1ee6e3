"""The numbers of a kernel: which there are, one step away from here, and a small search over them.

In C++ a number that may be tuned stands in one line at namespace scope, with the values it may take; in
Python it is an entry of CONFIG, and SPACE has what it may be::

    constexpr int ROW_BLOCK = 4;  // tune: 1 2 4 8

    CONFIG = {"BLOCK": 1024, "num_warps": 4}
    SPACE = {"BLOCK": [512, 1024, 2048], "num_warps": [2, 4, 8]}

Everything here is a function of its arguments: no clock, no state that is not handed in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from operators.proposal import Brief, Proposal
from populations.kernel import Kernel

Space = dict[str, tuple[int, tuple[int, ...]]]
Configuration = tuple[int, ...]

_LINE = re.compile(
    r"^(?P<head>[ \t]*(?:static\s+)?constexpr\s+[\w:]+\s+(?P<name>\w+)\s*=\s*)(?P<value>-?\d+)"
    r"(?P<tail>\s*;[ \t]*//[ \t]*tune:(?P<allowed>[ \t\d-]+)$)",
    re.MULTILINE,
)
PYTHON = ("triton",)  # languages whose numbers stand in CONFIG and SPACE


def space(source: str, language: str = "cpp") -> Space:
    """The tuning constants of a source: name -> (value, allowed values in rising order)."""
    if language in PYTHON:
        return {name: (value, allowed) for name, (value, allowed, _, _) in _entries(source).items()}
    found = _LINE.finditer(source) if language == "cpp" else ()
    return {
        m["name"]: (int(m["value"]), tuple(sorted({int(v) for v in m["allowed"].split()}))) for m in found
    }


def configuration(source: str, language: str = "cpp") -> Configuration:
    """The values of all tuning constants, in the order of ``space``."""
    return tuple(value for value, _ in space(source, language).values())


def with_values(source: str, values: Mapping[str, int], language: str = "cpp") -> str:
    """The source with these constants set.

    Raises:
        KeyError: a name that is no tuning constant of the source.
    """
    unknown = set(values) - set(space(source, language))
    if unknown:
        raise KeyError(
            f"no tuning constant {sorted(unknown)[0]!r}; there are {sorted(space(source, language))}"
        )

    def line(match: re.Match[str]) -> str:
        return f"{match['head']}{values.get(match['name'], int(match['value']))}{match['tail']}"

    return _with_entries(source, values) if language in PYTHON else _LINE.sub(line, source)


@lru_cache(maxsize=1024)
def _entries(source: str) -> dict[str, tuple[int, tuple[int, ...], int, int]]:
    """CONFIG's numbers that SPACE has a list of: name -> (value, allowed, first byte, byte behind)."""
    config, allowed = _dict(source, "CONFIG"), _dict(source, "SPACE")
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for name, node in config.items():
        value, choices = _literal(node), _literal(allowed[name]) if name in allowed else None
        if type(value) is int and isinstance(choices, list | tuple) and choices:
            numbers = {choice for choice in choices if type(choice) is int}
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            if len(numbers) == len(set(choices)):
                found[name] = (value, tuple(sorted(numbers)), start, end)
    return found


def _dict(source: str, name: str) -> dict[str, ast.expr]:
    """The entries of a dict that a module-level name is bound to; none where there is no such line."""
    if name not in source:
        return {}
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return {}
    for line in body:
        targets = line.targets if isinstance(line, ast.Assign) else []
        if [t.id for t in targets if isinstance(t, ast.Name)] == [name] and isinstance(line, ast.Assign):
            value = line.value
            pairs = zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ()
            return {
                key.value: item
                for key, item in pairs
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    return {}


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _with_entries(source: str, values: Mapping[str, int]) -> str:
    data, places = source.encode(), _entries(source)
    for name in sorted(values, key=lambda name: places[name][2], reverse=True):
        _, _, start, end = places[name]
        data = data[:start] + str(values[name]).encode() + data[end:]
    return data.decode()


def steps(value: int, allowed: Sequence[int]) -> tuple[int, ...]:
    """The allowed values next below and next above."""
    below, above = [v for v in allowed if v < value], [v for v in allowed if v > value]
    return (*below[-1:], *above[:1])


def neighbours(source: str, language: str = "cpp") -> tuple[str, ...]:
    """All sources one step of one constant away."""
    return tuple(
        with_values(source, {name: step}, language)
        for name, (value, allowed) in space(source, language).items()
        for step in steps(value, allowed)
    )


class Tune:
    """Moves one tuning constant by one step, now and then two of them."""

    name = "tune"
    arity = 1

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:  # noqa: ARG002
        """A neighbour of the parent; None where nothing can be moved."""
        parent = parents[0]
        moves = {
            name: steps(value, allowed)
            for name, (value, allowed) in space(parent.source, parent.language).items()
            if steps(value, allowed)
        }
        if not moves:
            return None
        names = rng.sample(sorted(moves), 2 if len(moves) > 1 and rng.random() < 0.3 else 1)
        chosen = {name: rng.choice(moves[name]) for name in names}
        said = ", ".join(f"{name} = {value}" for name, value in chosen.items())
        child = with_values(parent.source, chosen, parent.language)
        return Proposal(
            Kernel(child, parent.language), self.name, f"another number for the same structure: {said}"
        )


@dataclass(frozen=True)
class Tuner:
    """Tunes one structure: pattern search from the parent's own numbers.

    It keeps no results: hand in all that is known each time, and equal results give an equal answer.

    Attributes:
        source: the parent.
        limit: how many configurations besides the parent's it asks for at most.
    """

    source: str
    limit: int = 12
    language: str = "cpp"

    def next(self, results: Mapping[Configuration, float | None]) -> str | None:
        """The source to measure next; None when the best has no untried neighbour or the limit is reached.

        Args:
            results: rank by configuration (in the order of ``space``), larger is better; None: it failed.
        """
        start = configuration(self.source, self.language)
        tried = [c for c in results if c != start]
        if not start or len(tried) >= self.limit:
            return None
        if start not in results:
            return self.source
        best = self.best(results)
        untried = [c for c in self._around(best, results) if c not in results] if best is not None else []
        return self.of(untried[0]) if untried else None

    def best(self, results: Mapping[Configuration, float | None]) -> Configuration | None:
        """The configuration of largest rank, the smaller one where two are equal; None if all failed."""
        ranked = [(rank, c) for c, rank in results.items() if rank is not None]
        return min(ranked, key=lambda pair: (-pair[0], pair[1]))[1] if ranked else None

    def of(self, values: Configuration) -> str:
        """The source with this configuration."""
        names = space(self.source, self.language)
        return with_values(self.source, dict(zip(names, values, strict=True)), self.language)

    def _around(
        self, best: Configuration, results: Mapping[Configuration, float | None]
    ) -> list[Configuration]:
        """Neighbours of the best: first onward where a step has just paid off, then the newest constant."""
        onward: list[Configuration] = []
        others: list[Configuration] = []
        for i, (_, allowed) in reversed(list(enumerate(space(self.source, self.language).values()))):
            around = [(*best[:i], step, *best[i + 1 :]) for step in steps(best[i], allowed)]
            for j, place in enumerate(around):
                came_from = around[1 - j] if len(around) == 2 else None
                (onward if came_from in results else others).append(place)
        return onward + others
