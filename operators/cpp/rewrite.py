"""A structural rewrite: all the children that a source could have by one idea, of which chance takes one.

The idea is a plain function from a parsed source to edits, one tuple of edits a child, that yields nothing
where its precondition fails. Precondition and reason stand beside it, for the log and the table in the docs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from operators.cpp.nodes import well_formed
from operators.cpp.syntax import Edits, Unit, parse
from operators.proposal import Brief, Proposal
from populations.kernel import Kernel

Idea = Callable[[Unit, Brief], Iterator[Edits]]

_KNOB = re.compile(r"^constexpr\s+\w+\s+(\w+)\s*=[^\n]*//\s*tune:[^\n]*\n", re.MULTILINE)
_APART = re.compile(r"(//[ \t]*tune:[^\n]*\n)\n(?=constexpr[^\n]*//[ \t]*tune:)")


@dataclass(frozen=True)
class Rewrite:
    """A structural operator of arity 1.

    Attributes:
        name: as the log shows it.
        family: the file it lives in, for the table in the docs.
        needs: its precondition in words.
        reason: why a child may be faster, in one line.
        idea: yields the edits of each possible child.
    """

    name: str
    family: str
    needs: str
    reason: str
    idea: Idea
    arity: int = 1

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:
        """One of its children; None where there is none or it would not parse."""
        parent = parents[0]
        unit = parse(parent.source)
        choices = list(self.idea(unit, brief)) if unit.ok and unit.entry else []
        if not choices:
            return None
        child = without_idle_knobs(unit.edited(rng.choice(choices)))
        if child == parent.source or not well_formed(child):
            return None
        return Proposal(Kernel(child, parent.language), self.name, self.reason)

    def children(self, source: str, brief: Brief) -> Iterator[str]:
        """Every child it can make, the first site first."""
        unit = parse(source)
        if unit.ok and unit.entry:
            for edits in self.idea(unit, brief):
                yield without_idle_knobs(unit.edited(edits))


def rewrite(name: str, *, needs: str, reason: str) -> Callable[[Idea], Rewrite]:
    """Make a rewrite of an idea; see ``Rewrite`` for the words."""
    return lambda idea: Rewrite(name, idea.__module__.rsplit(".", 1)[-1], needs, reason, idea)


def without_idle_knobs(source: str) -> str:
    """The source without tuning constants that nothing uses any more: they would only cost evaluations."""
    for knob in list(_KNOB.finditer(source)):
        if len(re.findall(rf"\b{knob[1]}\b", source)) == 1:
            source = source.replace(knob[0], "", 1)
    return _APART.sub(r"\1", source)
