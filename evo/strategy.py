"""What to try next. Only the state and the number of the ask decide, so a resumed run tries the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from deap import base

from evo.bandit import Bandit
from evo.course import SEED, TUNE, Course
from evo.settings import Control, Settings
from evo.toolset import Tried, chance, use
from operators import space, with_values
from operators.proposal import Brief, Proposal
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
        model: that the operator spoke to; None: it needs none.
        call: whose answer it is; None: nobody was called.
    """

    ask: int
    operator: str
    parents: tuple[int, ...]
    proposal: Proposal | None
    rng: Random = field(repr=False)
    reason: str = "no operator applies to this parent"
    tried: tuple[Tried, ...] | None = None  # of a tuner's draft: what it knew
    model: str | None = None
    call: str | None = None


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
        self._control = settings.control

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
        root = None if self._control is Control.BEST_OF_N else course.next_to_tune(planned, spent)
        if root is not None and rng.random() < self._settings.tune_share:
            family = [*course.family(root), *course.waiting(root)]
            tried = [(self._kernel_of(id), state.rank(id)) for id in family]
            tried += [(kernel, None) for kernel in planned.get(root, ())]
            leader = (course.leader(root),)
            tried += [(self._with(leader[0], numbers), None) for numbers in course.idle_numbers.get(root, ())]
            return self._tune(Draft(ask, TUNE, leader, None, rng, "no other numbers to try", tuple(tried)))
        parents = one, other = self.select(state, course, rng)
        share = 0.0 if self._control is Control.NO_CROSSOVER else self._settings.crossover
        bandit = self._bandit(course)
        child: Proposal | None = None
        if one != other and rng.random() < share:
            child = use(self._toolbox.mate, self._kernels(parents), self._brief, rng, bandit)
        if child is not None:
            return Draft(ask, child.operator, parents, child, rng, model=child.model)
        return self._mutate(Draft(ask, "mutate", (one,), None, rng), self._kernel_of(one), state, course)

    def onward(self, draft: Draft, state: State, course: Course, attempt: int) -> Draft:
        """After a child that is known already: another of the same parent, later one on top of it.

        Args:
            draft: whose child is a duplicate.
            state, course: what is known.
            attempt: how many duplicates this ask has met, from 1.
        """
        if draft.proposal is None or draft.operator == SEED:
            return replace(draft, proposal=None)
        if draft.tried is not None:
            return self._tune(replace(draft, tried=(*draft.tried, (draft.proposal.kernel, None))))
        if attempt <= SIBLINGS:
            parent = self._kernel_of(draft.parents[0])
            return self._mutate(
                replace(draft, parents=draft.parents[:1], proposal=None), parent, state, course
            )
        return self._mutate(draft, draft.proposal.kernel, state, course)

    def _mutate(self, draft: Draft, start: Kernel, state: State, course: Course) -> Draft:
        brief = replace(self._brief, running=_running(draft.parents[0], state))
        child = use(self._toolbox.mutate, (start,), brief, draft.rng, self._bandit(course))
        if child is None:
            return replace(draft, proposal=None)
        if draft.proposal is None:
            return replace(draft, operator=child.operator, proposal=child, model=child.model)
        both = replace(child, rationale=f"{draft.proposal.rationale}; then {child.rationale}")
        # What changed a structure is no mere tuning, whatever came after it.
        maker = draft if child.operator == TUNE else child
        return replace(draft, operator=maker.operator, proposal=both, model=maker.model)

    def _tune(self, draft: Draft) -> Draft:
        parents = self._kernels(draft.parents)
        return replace(draft, proposal=self._toolbox.tune(parents, self._brief, draft.rng, tried=draft.tried))

    def _bandit(self, course: Course) -> Bandit | None:
        return None if self._control is Control.RANDOM_OPERATOR else course.bandit

    def select(self, state: State, course: Course, rng: Random) -> tuple[int, int]:
        """Two parents, which may be the same."""
        if self._control in (Control.BEST_OF_N, Control.RANDOM_PARENT):
            ids = course.measured(seeds=self._control is Control.BEST_OF_N)
            if ids:
                return rng.choice(ids), rng.choice(ids)
        with chance(rng):
            one, other = self._toolbox.select(list(state.archive), 2)
        return one.id, other.id

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
