"""Where a mutation is sent: to kinds of kernels of which a run has none or few, in an author's words.

Next to a parent's cell (``evo.traits``) are those that differ from it in one trait. The fewer measured
structures such a cell holds, the likelier it is the direction.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from random import Random

from evo.course import Course
from evo.traits import TRAITS, Cell, Profile, cell
from populations.kernel import Kernel
from populations.state import State

DIRECTED = 0.5  # share of mutations that are sent somewhere; the others go where their author likes
RECENT = 256  # measured structures that are looked at, the latest ones


class Directions:
    """Finds directions.

    Args:
        language: of the kernels.
        kernel_of, profile_of: of an individual, wherever they are.
    """

    def __init__(
        self,
        language: str,
        kernel_of: Callable[[int], Kernel],
        profile_of: Callable[[int], Profile],
    ) -> None:
        self._traits = TRAITS.get(language, ())
        self._kernel_of, self._profile_of = kernel_of, profile_of
        self._cells: dict[int, Cell] = {}

    def toward(self, parent: int, state: State, course: Course, rng: Random) -> str:
        """What a child of this parent shall try; "" leaves it to its author.

        Args:
            parent: its id.
            state, course: what is known.
            rng: the only source of chance.
        """
        if rng.random() >= DIRECTED:
            return ""
        here, held = self._cell(parent), self._held(course)
        beside = [
            (trait.levels[level], held[(*here[:at], level, *here[at + 1 :])])
            for at, trait in enumerate(self._traits)
            for level in range(len(trait.levels))
            if here[at] is not None and level != here[at]
        ]
        if not beside:
            return ""
        ((words, ids),) = rng.choices(beside, [1.0 / (1 + len(ids)) for _, ids in beside])
        return f"{words} ({_known(ids, parent, state)})"

    def _held(self, course: Course) -> defaultdict[Cell, list[int]]:
        """Measured structures by cell."""
        found = defaultdict[Cell, list[int]](list)
        for id in course.structures(RECENT):
            found[self._cell(id)].append(id)
        return found

    def _cell(self, id: int) -> Cell:
        if id not in self._cells:
            self._cells[id] = cell(self._kernel_of(id), self._profile_of(id))
        return self._cells[id]


def _known(ids: list[int], parent: int, state: State) -> str:
    """What the run knows of kernels that are like the parent in all other traits."""
    highest, start = state.best_rank(ids), state.rank(parent)
    if highest is None or start is None:
        return "not tried yet: no measured kernel does this and otherwise resembles the parent"
    count = "one does" if len(ids) == 1 else f"{len(ids)} do"
    best = math.exp(highest - start)
    return f"of kernels that otherwise resemble the parent {count} this, at best with {best:.2f} of its speed"
