"""A structural rewrite: all the children that a source could have by one idea, of which chance takes one.

The idea is a plain function from a parsed source to edits, one tuple of edits a child, that yields nothing
where its precondition fails. Precondition and reason stand beside it, for the log and the table in the docs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import libcst as cst

from operators.proposal import Brief, Proposal
from operators.triton.structure import Unit, unit_of
from operators.triton.syntax import Edits, well_formed
from populations.kernel import Kernel

Idea = Callable[[Unit, Brief], Iterator[Edits]]


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
        """One of its children; None where there is none or the parent is no Triton source."""
        parent = parents[0]
        if parent.language != "triton":
            return None
        choices = [edits for edits in _edits(self, parent.source, brief) if _matters(edits, parent, brief)]
        if not choices:
            return None
        child = unit_of(parent.source).tree.edited(rng.choice(choices))
        if child == parent.source or not well_formed(child):
            return None
        return Proposal(Kernel(child, parent.language), self.name, self.reason)

    def children(self, source: str, brief: Brief) -> Iterator[str]:
        """Every child it can make, the first site first."""
        for edits in _edits(self, source, brief):
            yield unit_of(source).tree.edited(edits)


def _matters(edits: Edits, parent: Kernel, brief: Brief) -> bool:
    """Whether edits touch more than what is idle where the parent is timed: functions, and their launches."""
    idle = _idle_spans(parent.source, brief.running)
    return not all(any(start <= edit.start and edit.end <= end for start, end in idle) for edit in edits)


@lru_cache(maxsize=512)
def _idle_spans(source: str, running: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """The bytes of jit functions that do not run, and of their launches; none where that is not known."""
    unit = unit_of(source)
    by_name = {jit.name: jit for jit in unit.jits}
    reached = [by_name[name] for name in running if name in by_name]
    if not reached:
        return ()
    for jit in reached:  # grows while it is gone through: what they call runs as well
        called = {name.value for name in unit.tree.find(jit.node, cst.Name)} & by_name.keys()
        reached += [by_name[name] for name in sorted(called) if by_name[name] not in reached]
    idle = [jit for jit in unit.jits if jit not in reached]
    statements = [launch.statement for jit in idle for launch in unit.launches_of(jit)]
    return tuple(unit.tree.lines(node) for node in [*(jit.node for jit in idle), *statements])


@lru_cache(maxsize=1024)
def _edits(rewrite: Rewrite, source: str, brief: Brief) -> tuple[Edits, ...]:
    try:
        unit = unit_of(source)
    except (cst.ParserSyntaxError, UnicodeError):
        return ()
    return tuple(rewrite.idea(unit, brief)) if unit.launches else ()


def rewrite(name: str, *, needs: str, reason: str) -> Callable[[Idea], Rewrite]:
    """Make a rewrite of an idea; see ``Rewrite`` for the words."""
    return lambda idea: Rewrite(name, idea.__module__.rsplit(".", 1)[-1], needs, reason, idea)
