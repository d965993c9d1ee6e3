"""What the search remembers beside the population: a fold over the same events, as resumes need it."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from evo.bandit import Bandit
from evo.briefing import Lineages
from evo.errands import Errands
from evo.ledger import Ledger
from evo.memory import Memory
from populations.events import Event, Judged, Promoted, Proposed, Stillborn
from populations.state import State
from populations.verdict import Outcome

SEED, TUNE = "seed", "tune"
_NEVER = float("-inf")


class Course:
    """Families and what is due, after the events so far.

    A *family* is a structure with its tuned variants: its root is the kernel that brought the structure, and
    every kernel that tuning made of a member belongs to it.

    Args:
        state: the population; each event is applied to it first, then to this.
        tune_evaluations: how many tune evaluations a promising new structure gets.
        bandit: what is known of the operators.
        ledger: what is spent.
        remembers: whether models are to be told what was tried, whoever tried it.

    Attributes:
        errands: what models were asked for.
        lineages: what was tried on each kernel.
        memory: what agents found out that is no kernel.
        due: roots of families with tune evaluations left, and how many.
        artifacts: machine code by hash, and the first kernel that has it.
        alike: work on the timed cases by hash, and the first kernel that was measured at it.
        barren: asks in a row that led to no evaluation.
        idle_numbers: by root, numbers that were the same work as an earlier kernel.
        fresh: kernels promoted since the last first verdict; measuring them again would tell nothing new.
        seeds: ids of the starting kernels.
        promotion_s: device time spent on promotions.
        longest_promotion_s: of the longest one.
    """

    def __init__(
        self,
        state: State,
        tune_evaluations: int,
        bandit: Bandit,
        ledger: Ledger,
        remembers: bool = False,
    ) -> None:
        self._state, self._remembers = state, remembers
        self.bandit, self.ledger = bandit, ledger
        self.errands, self.lineages = Errands(), Lineages(state)
        self.memory = Memory(state, lambda: self.noise)
        self._grant = tune_evaluations
        self._proposed: dict[int, Proposed] = {}  # waiting for their verdict
        self._root: dict[int, int] = {}
        self._kin: dict[int, list[int]] = {}
        self.due: dict[int, int] = {}
        self.artifacts: dict[str, int] = {}
        self.alike: dict[str, int] = {}
        self.barren = 0
        self.idle_numbers: dict[int, list[tuple[int, ...]]] = {}
        self.fresh: set[int] = set()
        self.seeds: list[int] = []
        self.promotion_s = 0.0
        self.longest_promotion_s = 0.0
        self._claims_s: list[float] = []  # of the promotions that led to a claim
        self._measured: list[int] = []

    def apply(self, event: Event) -> None:
        """Take in an event that the state has taken in; constant time."""
        self.ledger.apply(event)
        self.bandit.apply(event, chosen=self._chosen(event))
        self.errands.apply(event)
        tuned = isinstance(event, Proposed) and event.operator == TUNE
        if (self._remembers or self.errands.begun) and not tuned:  # else nobody asks for them
            self.lineages.apply(event)
            self.memory.apply(event)
        match event:
            case Proposed():
                self._propose(event)
            case Stillborn():
                self.barren += 1
                if event.operator == TUNE:
                    self._not_tuned(self._root[event.parents[0]], event)
            case Judged(id, verdict):
                if (born := self._proposed.pop(id)).timed_sha and verdict.status is Outcome.MEASURED:
                    self.alike.setdefault(born.timed_sha, id)
                if verdict.status is Outcome.MEASURED:
                    self._measured.append(id)
                self._judge(born)
            case Promoted(id, verdict):
                self.fresh.add(id)
                self.promotion_s += verdict.device_s
                self.longest_promotion_s = max(self.longest_promotion_s, verdict.device_s)
                if verdict.status is Outcome.MEASURED:
                    self._claims_s.append(verdict.device_s)

    def _chosen(self, event: Event) -> bool:
        """Whether an ask that ends went to an operator because of what it gained."""
        if not isinstance(event, Proposed | Stillborn) or event.operator != TUNE:
            return not isinstance(event, Proposed | Stillborn) or event.operator != SEED
        return self._root[event.parents[0]] not in self.due  # else the tuner was due

    @property
    def usual_promotion_s(self) -> float:
        """Device time that a claim usually takes: one with rounds taken again says little of the next."""
        return statistics.median(self._claims_s) if self._claims_s else self.longest_promotion_s

    def measured(self, seeds: bool = False) -> list[int]:
        """All kernels that have a rank, oldest first; or the starting kernels among them."""
        return [id for id in (self.seeds if seeds else self._measured) if self._state.rank(id) is not None]

    def structures(self, most: int) -> list[int]:
        """Measured kernels that a family begins with, latest first.

        Args:
            most: how many.
        """
        roots = (id for id in reversed(self._measured) if self._root[id] == id)
        return list(islice((id for id in roots if self._state.rank(id) is not None), most))

    def twin(self, artifact_sha: str | None, timed_sha: str | None) -> int | None:
        """An earlier kernel that is as fast because it is the same: in all its machine code, or, where it was
        measured, in all that is timed."""
        twin = self.artifacts.get(artifact_sha) if artifact_sha else None
        return twin or (self.alike.get(timed_sha) if timed_sha else None)

    def family(self, root: int) -> list[int]:
        """All judged members, in the order of their verdicts."""
        return self._kin[root]

    def leader(self, root: int) -> int:
        """The family's best member; its root where none is measured."""
        return max(self._kin[root], key=lambda id: (self._rank(id), -id))

    def next_to_tune(
        self, planned: Mapping[int, Sequence[object]], spent: Collection[int] = ()
    ) -> int | None:
        """The root of the most promising family that still has tune evaluations due.

        Args:
            planned: children of tuning that are asked for but not logged yet, by root.
            spent: roots of which such an ask found that no numbers are left.
        """
        left = {root: due - len(planned.get(root, ())) for root, due in self.due.items()}
        due = [root for root, count in left.items() if count > 0 and root not in spent]
        return max(due, key=lambda root: (self._rank(self.leader(root)), -root), default=None)

    def root(self, id: int) -> int:
        """The root of a kernel's family."""
        return self._root[id]

    def waiting(self, root: int) -> list[int]:
        """A family's members that are proposed but not judged."""
        return [id for id in self._proposed if self._root[id] == root]

    def _propose(self, event: Proposed) -> None:
        self.barren = 0
        if event.artifact_sha is not None:
            self.artifacts.setdefault(event.artifact_sha, event.id)
        self._proposed[event.id] = event
        self._root[event.id] = event.id
        if event.operator == SEED:
            self.seeds.append(event.id)
        if event.operator == TUNE:
            self._root[event.id] = root = self._root[event.parents[0]]
            self.due[root] = self.due.get(root, 0) - 1
            if self.due[root] <= 0:
                del self.due[root]

    def _not_tuned(self, root: int, event: Stillborn) -> None:
        if event.twin is not None:
            self.idle_numbers.setdefault(root, []).append(event.numbers)
        elif event.call is None:  # else two that proposed at once took the same step
            self.due.pop(root, None)  # no numbers left to try

    def _judge(self, event: Proposed) -> None:
        self.fresh.clear()
        self._kin.setdefault(self._root[event.id], []).append(event.id)
        if event.operator != TUNE and self._grant and self._promising(event):
            self.due[event.id] = self._grant

    def _promising(self, event: Proposed) -> bool:
        """Whether a new structure is as fast as its parent, within the noise, before any tuning."""
        rank = self._state.rank(event.id)
        before = max((self._rank(parent) for parent in event.parents), default=_NEVER)
        return rank is not None and rank >= before - 2 * self.noise

    @property
    def noise(self) -> float:
        """Half-width of the widest A/A interval under the declared policy, of log speed-up."""
        calibration, started = self._state.calibration, self._state.started
        return calibration.noise_floor(started.card["policy"]) if calibration and started else 0.0

    def _rank(self, id: int) -> float:
        rank = self._state.rank(id)
        return _NEVER if rank is None else rank
