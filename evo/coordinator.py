"""The loop: ask, propose, admit, build, judge, tell. It alone changes the population, one event at a time.

A step asks for one batch. Its children are built side by side and logged as proposed in one transaction; then
they are judged one after another, each verdict a transaction of its own. Whatever a kill leaves proposed but
not judged, the process that resumes judges first; whatever it takes before that was never logged, and the
same asks bring the same children again. So nothing is lost and nothing is counted twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from evo.course import TUNE, Course
from evo.device import Device
from evo.settings import Settings
from evo.strategy import Draft, Strategy
from fitness.target import Admission, Built, Target
from populations.calibration import Calibration
from populations.events import Calibrated, Event, Judged, Promoted, Proposed, Resumed, Stillborn, Stopped
from populations.individual import Individual
from populations.kernel import Kernel
from populations.log import EventLog
from populations.state import State
from populations.verdict import Verdict

Begun = tuple[list["Stillborn | tuple[Draft, Admission]"], list[Future[Built | Verdict]]]
WELL_MEASURED = 10  # kernels that idle device time goes to
ATTEMPTS = 5  # of one ask, until a child is no duplicate
PROMOTION_SHARE = 0.25  # of device time, before the closing measurements


class Watcher(Protocol):
    """Whoever wants to see a run go by: a progress display, a test."""

    def told(self, event: Event, state: State) -> None:
        """An event was logged and applied."""

    def doing(self, what: str) -> None:
        """What happens now, in a few words."""


@dataclass(frozen=True)
class Batch:
    """Children asked for together, so that no two are the same: their hashes, and tuned ones by family."""

    known: set[str] = field(default_factory=set)
    tuned: dict[int, list[Kernel]] = field(default_factory=dict)


class Coordinator:
    """One process's work on a run. Where the log holds events already, it goes on from there.

    Args:
        log: the run, open for writing.
        state, course: after the log's events.
        strategy: what to try next.
        settings: budgets and shares.
        open_target: opens the device; called again where it broke.
        target: one that is open already.
        cores: how many builds run side by side, unless the settings say.
        watcher: told of everything.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        log: EventLog,
        state: State,
        course: Course,
        strategy: Strategy,
        settings: Settings,
        open_target: Callable[[], Target],
        watcher: Watcher,
        cores: int = 2,
        target: Target | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log, self._state, self._course = log, state, course
        self._strategy, self._settings, self._watcher, self._clock = strategy, settings, watcher, clock
        self._batch = settings.batch or cores
        self._device = Device(open_target, self._calibrated, watcher.doing, self._batch, target)
        self._built: dict[int, Built] = {}  # of this batch, for its promotions
        self._begun: Begun | None = None  # the next batch, where it was begun early

    @property
    def evaluations(self) -> int:
        """Kernels judged so far."""
        return self._state.evaluations

    def run(self, resuming: bool = False) -> str:
        """Finish what is waiting, search until the budget is spent, measure the finalists again.

        Args:
            resuming: whether another process began this run.

        Returns:
            Why it stopped.

        Raises:
            DeviceError: the device broke twice on one kernel. All that was judged is saved.
            KeyboardInterrupt: somebody stopped it. The same.
        """
        try:
            if resuming:
                self._tell(Resumed(self._state.evaluations))
            for event in list(self._state.waiting.values()):
                built = self._device.rebuild(self._kernel(event.id))
                self._told(event.id, built, self._screening(event.id, built))
            self._crown()
            while (why := self.finished()) is None:
                self.step()
            self._close()
            self._tell(Stopped(why))
        except KeyboardInterrupt:
            self._tell(Stopped("interrupted"))
            raise
        finally:
            self._device.close()
        return why

    def finished(self) -> str | None:
        """Why no further ask is made; None while there is budget. Starting kernels are judged in any case."""
        limit, minutes = self._settings.evaluations, self._settings.minutes
        if limit is not None and self._state.evaluations >= limit:
            return "evaluations"
        if self._state.next_ask <= self._strategy.seeds:
            return None
        if minutes is not None and self._state.wall_s + self._closing_s() >= minutes * 60:
            return "minutes"
        if self._course.barren >= self._settings.patience:
            return "exhausted"
        return None if len(self._state.archive) else "no measured kernel to go on from"

    def step(self) -> None:
        """One batch, from its asks to its verdicts.

        Where builds disturb no timing, the next batch is asked for and built while this one is judged. It is
        asked for before any of this one's verdicts, whatever the order of things, so a seed decides it.
        """
        self._watcher.doing("proposing and building")
        begun, self._begun = self._begun or self._begin(), None
        if self._device.separate:
            self._meanwhile(begun[1])
        events, kernels, ready = self._births(begun)
        self._tell(*events, kernels=kernels)
        self._watcher.doing("judging")
        screenings = [(id, built, self._screening(id, built)) for id, built in ready]
        if self._device.separate and self.finished() is None:
            self._begun = self._begin()
        for id, built, screening in screenings:
            self._told(id, built, screening)
        self._crown()

    def _begin(self) -> Begun:
        """The next asks, and their builds, begun."""
        proposals = self._proposals()
        admissions = [each[1] for each in proposals if not isinstance(each, Stillborn)]
        return proposals, self._device.build(admissions)

    def _meanwhile(self, builds: Sequence[Future[Built | Verdict]]) -> None:
        """While builds keep the device waiting, it measures the best that were only screened for a claim."""
        for one in list(self._state.archive)[:WELL_MEASURED]:
            if all(build.done() for build in builds):
                break
            if not self._state.champion(one.id):
                self._promote(one.id)

    def _births(self, begun: Begun) -> tuple[list[Event], list[Kernel], list[tuple[int, Built | Verdict]]]:
        """What comes of asks: one event for each, in order, and the kernels to judge."""
        proposals, builds = begun
        results = iter(builds)
        events: list[Event] = []
        kernels: list[Kernel] = []
        ready: list[tuple[int, Built | Verdict]] = []
        batch: dict[str, int] = {}  # machine code: the kernel of this batch that has it
        for proposal in proposals:
            if isinstance(proposal, Stillborn):
                events.append(proposal)
                continue
            draft, admission = proposal
            built, id = next(results).result(), self._state.next_id + len(ready)
            sha = built.artifact_sha if isinstance(built, Built) else None
            twin = self._course.artifacts.get(sha) or batch.setdefault(sha, id) if sha else id
            if twin != id:
                events.append(_stillborn(draft, f"the same machine code as kernel {twin}"))
                continue
            events.append(_proposed(id, draft, admission, sha))
            kernels.append(admission.kernel)
            ready.append((id, built))
        return events, kernels, ready

    def _proposals(self) -> list[Stillborn | tuple[Draft, Admission]]:
        """For as many asks as the batch and the budget have room for."""
        size = self._batch
        if self._settings.evaluations is not None:
            spoken_for = self._state.evaluations + len(self._state.waiting)
            size = min(size, self._settings.evaluations - spoken_for)
        if self._state.next_ask <= self._strategy.seeds:
            size = min(size, self._strategy.seeds + 1 - self._state.next_ask)
        batch = Batch()
        return [self._propose(self._state.next_ask + n, batch) for n in range(size)]

    def _propose(self, ask: int, batch: Batch) -> Stillborn | tuple[Draft, Admission]:
        draft = self._strategy.ask(ask, self._state, self._course, batch.tuned)
        reason = draft.reason
        for attempt in range(1, ATTEMPTS + 1):
            if draft.proposal is None:
                break
            admission = self._device.admit(draft.proposal.kernel)
            if isinstance(admission, Verdict):
                reason = admission.reason
                break
            if admission.normal_sha not in batch.known and not self._state.seen(admission.normal_sha):
                batch.known.add(admission.normal_sha)
                if draft.operator == TUNE:
                    root = self._course.root(draft.parents[0])
                    batch.tuned.setdefault(root, []).append(draft.proposal.kernel)
                return draft, admission
            reason = "a duplicate of an earlier kernel"
            draft = self._strategy.onward(draft, self._state, attempt)
        return _stillborn(draft, reason)

    def _screening(self, id: int, built: Built | Verdict) -> Future[Verdict] | None:
        """A kernel on its way through the gate and the first timing; None where it was refused before."""
        if not isinstance(built, Built):
            return None
        self._built[id] = built
        return self._device.screen(built)

    def _told(self, id: int, built: Built | Verdict, screening: Future[Verdict] | None) -> None:
        if isinstance(built, Built):
            assert screening is not None
            built = self._device.screened(built, screening)
        self._tell(Judged(id, built))

    def _crown(self) -> None:
        """Measure again whoever seems to beat the champion: what people see as best was measured twice."""
        while (challenger := self._challenger()) is not None:
            self._promote(challenger.id)
        self._built.clear()

    def _challenger(self) -> Individual | None:
        """The best kernel that was measured once, where there is no champion yet or it ranks above it."""
        best = self._state.best
        challenger = next((one for one in self._state.archive if not self._state.champion(one.id)), None)
        if best is None or challenger is None:
            return None
        if not self._state.champion(best.id):
            return challenger
        spent = self._course.promotion_s > PROMOTION_SHARE * self._state.device_s
        return challenger if challenger.fitness > best.fitness and not spent else None

    def _promote(self, id: int) -> None:
        self._watcher.doing("measuring a champion again")
        built = self._built.get(id) or self._device.rebuild(self._kernel(id))
        self._tell(Promoted(id, self._device.promote(built) if isinstance(built, Built) else built))

    def _close(self) -> None:
        """Measure the finalists again, unless nothing was judged since; whoever moves up has to pass too."""
        for _ in range(2 * self._settings.finalists + 2):
            stale = [id for id in self._finalists() if id not in self._course.fresh]
            if not stale:
                break
            self._promote(stale[0])

    def _finalists(self) -> list[int]:
        """The best few and the best starting kernel."""
        best = [one.id for one in self._state.archive][: self._settings.finalists]
        seeds = [id for id in self._course.seeds if self._state.rank(id) is not None]
        return [*best, *sorted(seeds, key=lambda id: -(self._state.rank(id) or 0.0))[:1]]

    def _closing_s(self) -> float:
        """Wall time that the closing measurements will take, by the longest promotion so far."""
        return 1.1 * (self._settings.finalists + 1) * self._course.longest_promotion_s

    def _kernel(self, id: int) -> Kernel:
        return self._log.kernel(self._log.proposed(id).source_sha)

    def _calibrated(self, calibration: Calibration) -> None:
        self._tell(Calibrated(calibration))

    def _tell(self, *events: Event, kernels: Sequence[Kernel] = ()) -> None:
        """The log first: what it does not hold has not happened."""
        now = self._clock()
        self._log.append(*events, kernels=kernels, time=now)
        for event in events:
            self._state.apply(event, now)
            self._course.apply(event)
            self._watcher.told(event, self._state)


def _stillborn(draft: Draft, reason: str) -> Stillborn:
    return Stillborn(draft.ask, draft.operator, draft.parents, reason)


def _proposed(id: int, draft: Draft, admission: Admission, artifact_sha: str | None) -> Proposed:
    assert draft.proposal is not None
    kernel, usage = admission.kernel, draft.proposal.usage
    return Proposed(
        draft.ask, id, kernel.sha, admission.normal_sha, kernel.language, draft.parents, draft.operator,
        draft.proposal.rationale, usage.tokens, usage.usd, usage.seconds, artifact_sha,
    )  # fmt: skip
