"""The loop: ask, propose, admit, build, judge, tell. It alone changes the population, one event at a time.

A step asks for one batch. Its children are built side by side and logged as proposed in one transaction; then
they are judged one after another, each verdict a transaction of its own. Whatever a kill leaves proposed but
not judged, the process that resumes judges first; whatever it takes before that was never logged, and the
same asks bring the same children again. So nothing is lost and nothing is counted twice.

Where builds disturb no timing there are no batches: a step ends one ask, the oldest of a stream
(``evo.stream``) of which others are being built and screened meanwhile, and logs its proposal and verdict in
one transaction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from evo.agency import Agency
from evo.asking import Asking
from evo.confirming import confirmation, confirmed
from evo.course import TUNE, Course
from evo.device import Asked, Device
from evo.inbox import Inbox, Taking
from evo.ledger import EVALUATIONS
from evo.settings import Settings
from evo.strategy import Draft, Strategy
from evo.stream import AHEAD, Batch, Birth, Stream
from fitness.target import Admission, Alike, Built, Target
from operators import configuration
from populations.calibration import Calibration
from populations.events import Calibrated, Event, Judged, Promoted, Proposed, Resumed, Stillborn, Stopped
from populations.individual import Individual
from populations.kernel import Kernel
from populations.log import EventLog
from populations.state import State
from populations.verdict import Verdict

SAME_CODE = "the same machine code"
SAME_WORK = "the same work on what is timed"
WELL_MEASURED = 10  # kernels that idle device time goes to
PROMOTION_SHARE = 0.15  # of device time, before the closing measurements
CLOSING_SHARE = 1 / 3  # of the time that a run may take, kept for them at most: few promotions tell little
OVERTIME = 1.5  # times what it may take, after which closing measurements are left out


class Watcher(Protocol):
    """Whoever wants to see a run go by: a progress display, a test."""

    def told(self, event: Event, state: State) -> None:
        """An event was logged and applied."""

    def doing(self, what: str) -> None:
        """What happens now, in a few words."""

    def note(self, line: str) -> None:
        """Something that people should know, in a line."""


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
        agency: speaks to models, or holds proposals to judge and nothing else; None: structural operators
            alone.
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
        agency: Agency | Inbox | None = None,
    ) -> None:
        self._log, self._state, self._course = log, state, course
        self._strategy, self._settings, self._watcher, self._clock = strategy, settings, watcher, clock
        self._batch = settings.batch or cores
        known = course.alike.__contains__
        self._device = Device(open_target, self._calibrated, watcher.doing, self._batch, target, known)
        rest = (self._device, state, course, settings, self._tell, watcher.note)
        self._asking = (
            Taking(agency, strategy, *rest) if isinstance(agency, Inbox) else Asking(strategy, agency, *rest)
        )
        self._told_at = clock()
        self._built: dict[int, Built] = {}  # of this batch, for its promotions
        self._stream = Stream(self._device, course, AHEAD * self._batch)
        self._crowning: tuple[int, Asked[Verdict]] | None = None  # a promotion that was begun
        self._since_crown = 0  # kernels judged

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
            self._asking.begin()
            for event in list(self._state.waiting.values()):
                built = self._device.rebuild(self._kernel(event.id))
                self._told(event.id, built, self._screening(event.id, built))
            self._crown()
            while (why := self.finished()) is None:
                self.step()
            self._stream.drop()
            self._crowned()
            self._close()
            self._confirm()
            self._asking.finish()
            self._tell(Stopped(why))
        except KeyboardInterrupt:
            self._asking.collect()
            self._tell(Stopped("interrupted"))
            raise
        finally:
            self._device.close()
            self._asking.close()
        return why

    def finished(self) -> str | None:
        """Why no further ask is made; None while there is budget. Starting kernels are judged in any case."""
        cap = self._asking.cap(self._wall_s() + self._closing_s())
        if cap == EVALUATIONS:
            return cap
        if self._state.next_ask <= self._strategy.seeds:
            return None
        if cap is not None:
            return cap
        if self._asking.models_may_help:
            return None
        if self._course.barren >= self._settings.patience:
            return "exhausted"
        return None if len(self._state.archive) else "no measured kernel to go on from"

    def step(self) -> None:
        """One batch, from its asks to its verdicts; where builds disturb no timing, the end of one ask."""
        if self._device.separate:
            self._flow()
            return
        self._asking.collect()
        self._watcher.doing("proposing and building")
        if not (proposals := self._proposals()):
            self._await()
            return
        events, kernels, ready = self._births(proposals)
        self._tell(*events, kernels=kernels)
        self._watcher.doing("judging")
        screenings = [(id, built, self._screening(id, built)) for id, built in ready]
        for id, built, screening in screenings:
            self._told(id, built, screening)
        self._crown()

    def _births(
        self, proposals: Sequence[Stillborn | Birth]
    ) -> tuple[list[Event], list[Kernel], list[tuple[int, Built | Verdict]]]:
        """What comes of asks: one event for each, in order, and the kernels to judge."""
        admissions = [each[1] for each in proposals if not isinstance(each, Stillborn)]
        results = iter(self._device.build(admissions))
        events: list[Event] = []
        kernels: list[Kernel] = []
        ready: list[tuple[int, Built | Verdict]] = []
        batch: dict[str, int] = {}  # machine code: the kernel of this batch that has it
        for proposal in proposals:
            if isinstance(proposal, Stillborn):
                events.append(proposal)
                continue
            draft, admission = proposal
            built, id = next(results).future.result(), self._state.next_id + len(ready)
            assert not isinstance(built, Alike)  # of targets with a stream alone
            sha = built.artifact_sha if isinstance(built, Built) else None
            twin = self._course.artifacts.get(sha) or batch.setdefault(sha, id) if sha else id
            if twin != id:
                events.append(_known(draft, admission, twin, SAME_CODE))
                continue
            events.append(_proposed(id, draft, admission, built))
            kernels.append(admission.kernel)
            ready.append((id, built))
        return events, kernels, ready

    def _flow(self) -> None:
        """The oldest ask under way ends: stillborn, or proposed and judged; those after it are under way.

        Every ask is made after a certain verdict, whatever the order of builds and screenings, so a seed
        decides it.
        """
        self._asking.collect()
        while not self._stream.full and self._may_ask(
            ask := (self._stream.last_ask or self._state.next_ask - 1) + 1
        ):
            if (asked := self._asking.propose(ask, self._stream.batch())) is None:
                break
            self._stream.put(asked)
        if self._stream.idle:
            self._await()
            return
        self._watcher.doing("proposing, building and judging")
        found = self._stream.built(self._meanwhile)
        if isinstance(found, Stillborn):
            self._tell(found)
        else:
            self._end(*found)
        self._stream.settle()

    def _end(self, draft: Draft, admission: Admission, built: Built | Alike | Verdict) -> None:
        artifact = built.artifact_sha if isinstance(built, Built) else None
        timed = None if isinstance(built, Verdict) else built.timed_sha
        if (twin := self._course.twin(artifact, timed)) is not None:
            same = artifact is not None and self._course.artifacts.get(artifact) == twin
            self._tell(_known(draft, admission, twin, SAME_CODE if same else SAME_WORK))
            return
        assert not isinstance(built, Alike)  # what a build knew of is known
        verdict = self._stream.judged(built) if isinstance(built, Built) else built
        id = self._state.next_id
        proposed = _proposed(id, draft, admission, built)
        self._tell(proposed, Judged(id, verdict), kernels=[admission.kernel])
        self._since_crown += 1
        if self._since_crown >= self._batch or draft.ask == self._strategy.seeds:
            self._crown_beside()

    def _may_ask(self, ask: int) -> bool:
        """Whether budget and knowledge allow this ask before those under way have ended."""
        limit, seeds = self._settings.evaluations, self._strategy.seeds
        if limit is not None and self._state.evaluations + self._stream.births >= limit:
            return False
        return ask <= seeds or self._state.next_ask > seeds

    def _meanwhile(self, idle_s: float) -> None:
        """The device waits for a build: it measures one of the best for a claim, if there is time."""
        if self._crowning is not None or not 0 < self._course.longest_promotion_s < idle_s:
            return
        for one in list(self._state.archive)[:WELL_MEASURED]:
            if not self._state.champion(one.id):
                self._promote(one.id)
                break

    def _crown_beside(self) -> None:
        """What the last challenger came to, and the next one on its way: one for each so many verdicts."""
        self._since_crown = 0
        self._crowned()
        if (challenger := self._challenger()) is not None:
            self._crowning = challenger.id, self._device.promotion(self._kernel(challenger.id))

    def _crowned(self) -> None:
        """The verdict of a promotion that was begun."""
        if self._crowning is not None:
            id, promotion = self._crowning
            self._crowning = None
            self._tell(Promoted(id, self._device.promoted(self._kernel(id), promotion)))

    def _proposals(self) -> list[Stillborn | Birth]:
        """For as many asks as the batch and the budget have room for."""
        size = self._batch
        if self._settings.evaluations is not None:
            spoken_for = self._state.evaluations + len(self._state.waiting)
            size = min(size, self._settings.evaluations - spoken_for)
        if self._state.next_ask <= self._strategy.seeds:
            size = min(size, self._strategy.seeds + 1 - self._state.next_ask)
        batch, found = Batch(), list[Stillborn | Birth]()
        for n in range(size):
            if (asked := self._asking.propose(self._state.next_ask + n, batch)) is None:
                break
            found.append(asked)
        return found

    def _await(self) -> None:
        self._watcher.doing("waiting for a model")
        self._asking.wait()

    def _wall_s(self) -> float:
        """Seconds that the run took, up to now."""
        return self._state.wall_s + max(0.0, self._clock() - self._told_at)

    def _screening(self, id: int, built: Built | Verdict) -> Asked[Verdict] | None:
        """A kernel on its way through the gate and the first timing; None where it was refused before."""
        if not isinstance(built, Built):
            return None
        self._built[id] = built
        return self._device.screen(built)

    def _told(self, id: int, built: Built | Verdict, screening: Asked[Verdict] | None) -> None:
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
            if self._wall_s() > OVERTIME * 60.0 * (self._settings.minutes or math.inf):
                self._watcher.note(f"no time is left to measure {_named(stale)} again: earlier claims stand")
                break
            self._promote(stale[0])

    def _confirm(self) -> None:
        """Run the best kernel's exported file. One that does other things falls, and the next is run."""
        for _ in range(self._settings.finalists + 1):
            best = self._state.best
            if best is None or confirmed(best, self._state):
                return
            self._watcher.doing("running what is exported")
            events = confirmation(best, self._kernel(best.id), self._state, self._device)
            self._tell(*events)
            if not any(isinstance(event, Promoted) for event in events):
                return
            self._close()

    def _finalists(self) -> list[int]:
        """The best few and the best starting kernel."""
        best = [one.id for one in self._state.archive][: self._settings.finalists]
        seeds = [id for id in self._course.seeds if self._state.rank(id) is not None]
        return [*best, *sorted(seeds, key=lambda id: -(self._state.rank(id) or 0.0))[:1]]

    def _closing_s(self) -> float:
        """Wall time to keep for the closing measurements, by what promotions took so far."""
        closing = 1.1 * (self._settings.finalists + 1) * self._course.usual_promotion_s
        minutes = self._settings.minutes
        return closing if minutes is None else min(closing, CLOSING_SHARE * 60.0 * minutes)

    def _kernel(self, id: int) -> Kernel:
        return self._log.kernel(self._log.proposed(id).source_sha)

    def _calibrated(self, calibration: Calibration) -> None:
        self._tell(Calibrated(calibration))

    def _tell(self, *events: Event, kernels: Sequence[Kernel] = ()) -> None:
        """The log first: what it does not hold has not happened."""
        now = self._told_at = self._clock()
        self._log.append(*events, kernels=kernels, time=now)
        for event in events:
            self._state.apply(event, now)
            self._course.apply(event)
            self._watcher.told(event, self._state)


def _named(ids: Sequence[int]) -> str:
    return ("kernel " if len(ids) == 1 else "kernels ") + ", ".join(map(str, ids))


def _known(draft: Draft, admission: Admission, twin: int, why: str) -> Stillborn:
    """A child that was built for nothing: it does the work of an earlier kernel."""
    kernel = admission.kernel
    numbers = configuration(kernel.source, kernel.language) if draft.operator == TUNE else ()
    reason = f"{why} as kernel {twin}"
    return Stillborn(
        draft.ask, draft.operator, draft.parents, reason, admission.normal_sha, twin, numbers,
        draft.model, draft.call,
    )  # fmt: skip


def _proposed(id: int, draft: Draft, admission: Admission, built: Built | Verdict) -> Proposed:
    assert draft.proposal is not None
    kernel, usage = admission.kernel, draft.proposal.usage
    artifact, timed = (built.artifact_sha, built.timed_sha) if isinstance(built, Built) else (None, None)
    return Proposed(
        draft.ask, id, kernel.sha, admission.normal_sha, kernel.language, draft.parents, draft.operator,
        draft.proposal.rationale, usage.tokens, usage.usd, usage.seconds, artifact, timed, draft.model,
        draft.call,
    )  # fmt: skip
