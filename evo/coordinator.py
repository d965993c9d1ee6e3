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

import time
from collections.abc import Callable, Sequence

from evo.agency import Agency
from evo.asking import Asking
from evo.course import TUNE, Course
from evo.device import Device
from evo.inbox import Inbox, Taking
from evo.ledger import EVALUATIONS
from evo.promotions import Promotions
from evo.settings import Settings
from evo.strategy import Draft, Strategy
from evo.stream import AHEAD, Batch, Birth, Stream
from evo.watcher import Watcher
from fitness.target import Admission, Alike, Built, Target
from operators import configuration
from populations.calibration import Calibration
from populations.events import Calibrated, Event, Judged, Proposed, Resumed, Stillborn, Stopped
from populations.kernel import Kernel
from populations.log import EventLog
from populations.state import State
from populations.verdict import Verdict

SAME_CODE = "the same machine code"
SAME_WORK = "the same work on what is timed"


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
        self._promotions = Promotions(
            state, course, settings, self._device, self._kernel, self._tell, watcher
        )
        self._told_at = clock()
        self._stream = Stream(self._device, course, AHEAD * self._batch)
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
            left = [(id, self._device.rebuild(self._kernel(id))) for id in self._state.waiting]
            self._judge(left)
            while (why := self.finished()) is None:
                self.step()
            self._stream.drop()
            self._promotions.finish(self._wall_s)
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
        cap = self._asking.cap(self._wall_s() + self._promotions.closing_s)
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
        self._judge(ready)

    def _judge(self, ready: Sequence[tuple[int, Built | Verdict]]) -> None:
        """The verdicts of a batch, each a transaction of its own, and a claim of whoever seems best."""
        built = {id: one for id, one in ready if isinstance(one, Built)}
        screenings = {id: self._device.screen(one) for id, one in built.items()}
        for id, one in ready:
            verdict = self._device.screened(one, screenings[id]) if isinstance(one, Built) else one
            self._tell(Judged(id, verdict))
        self._promotions.crown(built)

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
        found = self._stream.built(self._promotions.meanwhile)
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
            self._since_crown = 0
            self._promotions.beside()

    def _may_ask(self, ask: int) -> bool:
        """Whether budget and knowledge allow this ask before those under way have ended."""
        limit, seeds = self._settings.evaluations, self._strategy.seeds
        if limit is not None and self._state.evaluations + self._stream.births >= limit:
            return False
        return ask <= seeds or self._state.next_ask > seeds

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
