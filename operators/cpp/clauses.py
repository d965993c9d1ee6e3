"""OpenMP directives as text: a directive's words and its clauses, taken apart and put together again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from operators.cpp.dependence import Reduction

_CLAUSE = re.compile(r"(\w+)\s*(\(((?:[^()]|\([^()]*\))*)\))?")
WORDS = ("parallel", "for", "simd")


@dataclass(frozen=True)
class Directive:
    """``parallel for simd`` and its clauses, e.g. ``("schedule", "static, 4")``; no argument is ""."""

    words: tuple[str, ...]
    clauses: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(text: str) -> Directive:
        """What a pragma says after ``omp``."""
        parts = [(match[1], (match[3] or "").strip()) for match in _CLAUSE.finditer(text)]
        words = tuple(name for name, _ in parts if name in WORDS)
        return Directive(words, tuple(part for part in parts if part[0] not in WORDS))

    def has(self, clause: str) -> bool:
        """Whether it has such a clause."""
        return any(name == clause for name, _ in self.clauses)

    def without(self, *clauses: str) -> Directive:
        """The same without these clauses."""
        return Directive(self.words, tuple(part for part in self.clauses if part[0] not in clauses))

    def plus(self, clause: str, argument: str = "") -> Directive:
        """The same with one clause more."""
        return Directive(self.words, (*self.clauses, (clause, argument)))

    def only(self, *words: str) -> Directive:
        """The same clauses under other words."""
        return Directive(words, self.clauses)

    def __str__(self) -> str:
        clauses = [f"{name}({argument})" if argument else name for name, argument in self.clauses]
        return " ".join([*self.words, *clauses])


def reducing(directive: Directive, found: Sequence[Reduction]) -> Directive:
    """The directive with a reduction clause for each operation that has not got one."""
    named = " ".join(argument.split(":")[-1] for name, argument in directive.clauses if name == "reduction")
    for op in ("+", "*", "max", "min"):
        names = [r.name for r in found if r.op == op and r.name not in re.findall(r"\w+", named)]
        if names:
            directive = directive.plus("reduction", f"{op} : {', '.join(names)}")
    return directive
