"""What to try next. Only the state and the number of the ask decide, so a resumed run tries the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from deap import base

from evo.course import SEED, TUNE, Course, credit
from evo.settings import Settings
from evo.toolset import Tried, chance, use
from operators import space, with_values
from operators.proposal import Brief, Proposal
from populations.individual import Individual
from populations.kernel import Kernel
from populations.state import State

SIBLINGS = 2  # further children of the same parent, before mutations are piled up to leave known ground


@dataclass(frozen=True)
class Draft:
    """The answer to one ask: a proposal, or why there is none.

    Attributes:
        ask: its number, from 1.
        operator: what was tried.
        parents: ids.
        proposal: the child; None where no operator's precondition held.
        reason: why there is none.
        rng: the ask's generator, for going on from here.
    """

    ask: int
    operator: str
    parents: tuple[int, ...]
    proposal: Proposal | None
    rng: Random = field(repr=False)
    reason: str = "no operator applies to this parent"
    tried: tuple[Tried, ...] | None = None  # of a tuner's draft: what it knew


class Strategy:
    """Seeds first; then tuning of promising new structures, crossover and structural mutation.

    Args:
        toolbox: see ``evo.toolset``.
        settings: the shares and the seed.
        brief: handed to every operator.
        seeds: the starting kernels.
        kernel_of: the kernel of an individual, wherever its source is.
    """

    def __init__(
        self,
        toolbox: base.Toolbox,
        settings: Settings,
        brief: Brief,
        seeds: Sequence[Proposal],
        kernel_of: Callable[[int], Kernel],
    ) -> None:
        self._toolbox = toolbox
        self._settings = settings
        self._brief = brief
        self._seeds = seeds
        self._kernel_of = kernel_of

    @property
    def seeds(self) -> int:
        """How many asks go to starting kernels."""
        return len(self._seeds)

    def ask(
        self,
        ask: int,
        state: State,
        course: Course,
        planned: Mapping[int, Sequence[Kernel]],
        spent: Collection[int] = (),
    ) -> Draft:
        """The draft for this ask; asks up to the number of seeds need no population.

        Args:
            ask: its number, from 1.
            state, course: what is known.
            planned: children of tuning in the same batch, by the root of their family.
            spent: roots of families of which an ask of the same batch found no numbers to try.
        """
        rng = Random(f"{self._settings.seed}:{ask}")
        if ask <= len(self._seeds):
            return Draft(ask, SEED, (), self._seeds[ask - 1], rng)
        root = course.next_to_tune(planned, spent)
        if root is not None and rng.random() < self._settings.tune_share:
            family = [*course.family(root), *course.waiting(root)]
            tried = [(self._kernel_of(id), state.rank(id)) for id in family]
            tried += [(kernel, None) for kernel in planned.get(root, ())]
            leader = (course.leader(root),)
            tried += [(self._with(leader[0], numbers), None) for numbers in course.idle_numbers.get(root, ())]
            return self._tune(Draft(ask, TUNE, leader, None, rng, "no other numbers to try", tuple(tried)))
        one, other = self._select(state, rng)
        if one is not other and rng.random() < self._settings.crossover:
            parents = (one.id, other.id)
            if child := use(
                self._toolbox.mate, self._kernels(parents), self._brief, rng, credit(state.operators)
            ):
                return Draft(ask, child.operator, parents, child, rng)
        return self._mutate(Draft(ask, "mutate", (one.id,), None, rng), self._kernel_of(one.id), state)

    def onward(self, draft: Draft, state: State, attempt: int) -> Draft:
        """After a child that is known already: another of the same parent, later one on top of it.

        Args:
            draft: whose child is a duplicate.
            state: the population.
            attempt: how many duplicates this ask has met, from 1.
        """
        if draft.proposal is None or draft.operator == SEED:
            return replace(draft, proposal=None)
        if draft.tried is not None:
            return self._tune(replace(draft, tried=(*draft.tried, (draft.proposal.kernel, None))))
        if attempt <= SIBLINGS:
            parent = self._kernel_of(draft.parents[0])
            return self._mutate(replace(draft, parents=draft.parents[:1], proposal=None), parent, state)
        return self._mutate(draft, draft.proposal.kernel, state)

    def _mutate(self, draft: Draft, start: Kernel, state: State) -> Draft:
        brief = replace(self._brief, running=_running(draft.parents[0], state))
        child = use(self._toolbox.mutate, (start,), brief, draft.rng, credit(state.operators))
        if child is None:
            return replace(draft, proposal=None)
        if draft.proposal is None:
            return replace(draft, operator=child.operator, proposal=child)
        both = replace(child, rationale=f"{draft.proposal.rationale}; then {child.rationale}")
        # What changed a structure is no mere tuning, whatever came after it.
        return replace(
            draft, operator=draft.operator if child.operator == TUNE else child.operator, proposal=both
        )

    def _tune(self, draft: Draft) -> Draft:
        parents = self._kernels(draft.parents)
        return replace(draft, proposal=self._toolbox.tune(parents, self._brief, draft.rng, tried=draft.tried))

    def _select(self, state: State, rng: Random) -> tuple[Individual, Individual]:
        with chance(rng):
            one, other = self._toolbox.select(list(state.archive), 2)
        return one, other

    def _with(self, id: int, numbers: Sequence[int]) -> Kernel:
        """The same structure with other numbers."""
        kernel = self._kernel_of(id)
        values = dict(zip(space(kernel.source, kernel.language), numbers, strict=True))
        return Kernel(with_values(kernel.source, values, kernel.language), kernel.language)

    def _kernels(self, ids: Sequence[int]) -> tuple[Kernel, ...]:
        return tuple(self._kernel_of(id) for id in ids)


def _running(id: int, state: State) -> tuple[str, ...]:
    """Names of the device functions that a kernel of the archive runs where it is timed; empty: not known."""
    one = state.archive.get(id)
    return tuple(part.name for part in one.verdict.profile) if one and one.verdict else ()
