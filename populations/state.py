"""Where a run stands: a fold over its events, and nothing that cannot be folded again.

The loop keeps one ``State`` and applies each event to it once the log has stored it; ``State.replay`` gives
the same from the log alone. Applying costs the same for the first event and the twenty-thousandth, and what
is kept of a kernel that is not among the best is a few numbers: its source and verdict stay in the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from sys import intern

from populations.archive import TopArchive, standing
from populations.calibration import Calibration
from populations.events import (
    Calibrated,
    Event,
    Exported,
    Judged,
    Promoted,
    Proposed,
    Resumed,
    Settled,
    Started,
    Stillborn,
    Stopped,
)
from populations.export_check import ExportCheck
from populations.folder import RunError
from populations.individual import Individual
from populations.kernel import Kernel
from populations.log import Store
from populations.ranking import Ranking
from populations.verdict import Outcome, Stage, Verdict


@dataclass
class OperatorRecord:
    """What came of one operator's asks.

    Attributes:
        asks: how often it was asked; each ended as a proposal or stillborn.
        stillborn: asks that led to no evaluation.
        evaluations: its kernels by first verdict.
        over_parents: measured kernels that ranked above their best measured parent.
        parent_gain: sum of those gains in rank (log speed-up).
        records: measured kernels that ranked above everything before them, not counting a run's first.
        record_gain: sum of those gains in rank (log speed-up).
        tokens, usd, seconds: what its proposals cost.
    """

    asks: int = 0
    stillborn: int = 0
    evaluations: Counter[Outcome] = field(default_factory=Counter)
    over_parents: int = 0
    parent_gain: float = 0.0
    records: int = 0
    record_gain: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


class State:
    """A run as its events tell it.

    Attributes:
        started: the first event; None: the log is empty. ``settings`` and ``card`` are in it.
        calibration: the device's latest word; None: not calibrated yet.
        next_ask, next_id: numbers for the next ask and the next evaluation.
        asks, stillborn: asks that ended, and those of them that led to no evaluation.
        waiting: proposals that are not judged yet, by id, oldest first.
        evaluations: kernels judged.
        archive: the best kernels.
        outcomes, stages: kernels by first verdict's outcome and deciding stage.
        operators: each operator's record, by name.
        exports: what came of running exported files, by kernel.
        stopped: why the loop ended; None: it has not, or was resumed.
        device_s, tokens, usd: spent so far.
        wall_s: seconds from first to last event, without the time between a stop and the next resume.
    """

    def __init__(
        self,
        store: Store,
        capacity: int = 64,
        per_structure: int | None = None,
        structure: Callable[[Kernel], str] = lambda kernel: kernel.sha,
    ) -> None:
        """An empty state.

        Args:
            store: where sources are looked up.
            capacity: size of the archive.
            per_structure: how many kernels of one structure it holds; None: no limit.
            structure: what kernels share that differ only in tuning numbers; called for those that may enter.
        """
        self._store = store
        self._structure = structure
        self.archive = TopArchive(capacity, per_structure)
        self.started: Started | None = None
        self.calibration: Calibration | None = None
        self.next_ask = self.next_id = 1
        self.asks = self.stillborn = self.evaluations = self.tokens = 0
        self.waiting: dict[int, Proposed] = {}
        self.outcomes: Counter[Outcome] = Counter()
        self.stages: Counter[Stage] = Counter()
        self.operators: dict[str, OperatorRecord] = {}
        self.exports: dict[int, ExportCheck] = {}
        self.stopped: str | None = None
        self.device_s = self.usd = self.wall_s = 0.0
        self._seen: set[bytes] = set()
        self._applied = 0  # events, which is the last one's number in the log
        self._ranking = Ranking()
        self._structures: dict[int, str] = {}  # of some that the archive does not hold
        self._champions: dict[int, Individual] = {}
        self._last_time: float | None = None

    @classmethod
    def replay(
        cls,
        store: Store,
        capacity: int = 64,
        per_structure: int | None = None,
        structure: Callable[[Kernel], str] = lambda kernel: kernel.sha,
    ) -> State:
        """The state after all events of a log.

        Raises:
            RunError: an event that cannot be read, or cannot follow from those before it.
        """
        state = cls(store, capacity, per_structure, structure)
        for record in store.records():
            try:
                state.apply(record.event, record.time)
            except ValueError as why:
                raise RunError(
                    f"event {record.seq} makes no sense: {why}; `kernel-evo check` lists what is broken"
                ) from why
        return state

    @property
    def best(self) -> Individual | None:
        """The kernel to show: the promoted one with the highest rank, else the highest-ranking one.

        At equal rank one that is general comes first, then the older. A kernel's latest verdict counts.
        """
        claimed = [one for one in self._champions.values() if one.verdict and one.verdict.fitness is not None]
        return min(claimed, key=standing, default=self.archive.best)

    def seen(self, normal_sha: str) -> bool:
        """Whether a kernel with this hash (without comments and layout) was built before."""
        return _short(normal_sha) in self._seen

    def rank(self, id: int) -> float | None:
        """The latest rank of a kernel, also one that left the archive; None: not measured."""
        return self._ranking.rank(id)

    def best_rank(self, ids: Iterable[int]) -> float | None:
        """The highest of some kernels' ranks; None: none of them was measured."""
        return max((rank for rank in map(self.rank, ids) if rank is not None), default=None)

    def champion(self, id: int) -> bool:
        """Whether a kernel was measured again for a claim."""
        return id in self._champions

    def apply(self, event: Event, time: float | None = None) -> None:
        """Take in the next event.

        Args:
            event: as stored; its kernel must be in the store.
            time: when, in seconds since 1970; None: ``wall_s`` does not count it.

        Raises:
            ValueError: it cannot follow from the events before it.
        """
        self._pass_time(event, time)
        self._applied += 1
        match event:
            case Started():
                self.started = event
            case Calibrated(calibration):
                self.calibration = calibration
            case Proposed():
                self._proposed(event)
            case Stillborn():
                self._asked(event.ask, event.operator).stillborn += 1
                self.stillborn += 1
                if event.normal_sha is not None:
                    self._seen.add(_short(event.normal_sha))
            case Judged(id, verdict):
                self._judged(id, verdict)
            case Promoted(id, verdict):
                self._promoted(id, verdict)
            case Exported(id, check):
                if not self.champion(id):
                    raise ValueError(f"kernel {id} was exported before it was promoted")
                self.exports[id] = check
            case Settled():
                self.tokens += event.tokens
                self.usd += event.usd
            case Resumed():
                self.stopped = None
            case Stopped(why):
                self.stopped = why

    def _asked(self, ask: int, operator: str) -> OperatorRecord:
        self.asks += 1
        self.next_ask = max(self.next_ask, ask + 1)
        record = self.operators.setdefault(operator, OperatorRecord())
        record.asks += 1
        return record

    def _proposed(self, event: Proposed) -> None:
        record = self._asked(event.ask, event.operator)
        self.next_id = max(self.next_id, event.id + 1)
        self._seen.add(_short(event.normal_sha))
        self.waiting[event.id] = event
        record.tokens += event.tokens
        record.usd += event.usd
        record.seconds += event.seconds
        if event.model is None:  # what a model costs is told by its calls
            self.tokens += event.tokens
            self.usd += event.usd

    def _judged(self, id: int, verdict: Verdict) -> None:
        proposal = self.waiting.pop(id, None)
        if proposal is None:
            raise ValueError(f"kernel {id} was judged before, or never proposed")
        self.evaluations += 1
        self.outcomes[verdict.status] += 1
        self.stages[verdict.stage] += 1
        self.device_s += verdict.device_s
        record = self.operators[proposal.operator]
        record.evaluations[verdict.status] += 1
        if verdict.status is not Outcome.MEASURED or verdict.rank is None:
            return
        self._credit(record, proposal.parents, verdict.rank)
        self._ranking.note(id, verdict, self._applied)
        if self.archive.admits(verdict.rank):
            self._admit(self._individual(proposal, verdict))

    def _credit(self, record: OperatorRecord, parents: tuple[int, ...], rank: float) -> None:
        """Compare a newcomer with its parents and with the best so far, by their latest ranks."""
        before = max((rank for rank in map(self.rank, parents) if rank is not None), default=None)
        if before is not None and rank > before:
            record.over_parents += 1
            record.parent_gain += rank - before
        if self.archive.best is not None and rank > (top := float(self.archive.best.fitness.values[0])):
            record.records += 1
            record.record_gain += rank - top

    def _promoted(self, id: int, verdict: Verdict) -> None:
        one = self.archive.get(id) or self._champions.get(id)
        if one is None:
            proposal = self._store.proposed(id)
            if id in self.waiting or id >= self.next_id:
                raise ValueError(f"kernel {id} was promoted before it was judged")
            one = self._individual(proposal, verdict)
        before = self._ranking.standing(id)
        one.judged(verdict)
        self.device_s += verdict.device_s
        self._champions[id] = one
        self._ranking.note(id, verdict, self._applied)
        self._admit(one)
        after = self._ranking.standing(id)
        if before is not None and (after is None or after > before):
            self._readmit()

    def _readmit(self) -> None:
        """A kernel fell, or has no rank any more: those that it kept out of the archive come back."""
        if len(self._ranking) == len(self.archive):
            return
        for id in self.archive.elected(self._ranking.best_first(), self._structure_of):
            if self.archive.get(id) is None:
                self._admit(self._champions.get(id) or self._recalled(id))

    def _structure_of(self, id: int) -> str:
        if self.archive.get(id) is not None:
            return self.archive.structure(id)
        if id not in self._structures:
            kernel = self._store.kernel(self._store.proposed(id).source_sha)
            self._structures[id] = intern(self._structure(kernel))
        return self._structures[id]

    def _recalled(self, id: int) -> Individual:
        event = self._store.event(self._ranking.event(id))
        if not isinstance(event, Judged | Promoted) or event.id != id:
            raise RunError(f"event {self._ranking.event(id)} is not the verdict on kernel {id}")
        return self._individual(self._store.proposed(id), event.verdict)

    def _individual(self, proposal: Proposed, verdict: Verdict) -> Individual:
        kernel = self._store.kernel(proposal.source_sha)
        return Individual(
            proposal.id, kernel, proposal.parents, proposal.operator, proposal.rationale, verdict
        )

    def _admit(self, one: Individual) -> None:
        kernel = one.kernel or self._store.kernel(one.sha)
        self.archive.add(one, self._structure(kernel))

    def _pass_time(self, event: Event, time: float | None) -> None:
        if time is None:
            return
        if self._last_time is not None and not isinstance(event, Resumed):
            self.wall_s += max(0.0, time - self._last_time)
        self._last_time = time


def _short(normal_sha: str) -> bytes:
    # 64 bits: among 20,000 kernels the chance of a false duplicate is 1e-11, and a set of them is 2 MB.
    return blake2b(normal_sha.encode(), digest_size=8).digest()
