"""Asks under way where builds go on while the device measures: built and screened ahead, settled in order.

Asks are made in order and end in order, whatever finishes first: ask n is made once ask n - window has
ended, so the device's pace decides nothing. In between every core builds, and the device screens what is
built, in whatever order that comes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from evo.course import TUNE, Course
from evo.device import Asked, Device
from evo.strategy import Draft
from fitness.target import Admission, Alike, Built
from populations.events import Stillborn
from populations.kernel import Kernel
from populations.verdict import Verdict

Birth = tuple[Draft, Admission]
AHEAD = 3  # asks under way for each build that may run at once: one slow build shall not stop the rest


@dataclass(frozen=True)
class Batch:
    """Children under way together, so that no two are the same.

    Attributes:
        known: their hashes.
        tuned: those of tuning, by the root of their family.
        spent: roots of families that an ask found no numbers for.
        calls: of models whose answers they are.
    """

    known: set[str] = field(default_factory=set)
    tuned: dict[int, list[Kernel]] = field(default_factory=dict)
    spent: set[int] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)

    def add(self, asked: Stillborn | Birth, course: Course) -> None:
        """Take in an ask."""
        call = asked.call if isinstance(asked, Stillborn) else asked[0].call
        if call is not None:
            self.calls.add(call)
        if isinstance(asked, Stillborn):
            if asked.operator == TUNE:
                self.spent.add(course.root(asked.parents[0]))
            return
        draft, admission = asked
        assert draft.proposal is not None
        self.known.add(admission.normal_sha)
        if draft.operator == TUNE:
            self.tuned.setdefault(course.root(draft.parents[0]), []).append(draft.proposal.kernel)


@dataclass
class _Ask:
    asked: Stillborn | Birth
    begun: float
    build: Asked[Built | Alike | Verdict] | None = None
    screening: Asked[Verdict] | None = None


class Stream:
    """The asks under way, oldest first.

    Args:
        device: builds and screens them.
        course: knows which work was judged before.
        window: how many there are at most.
    """

    def __init__(self, device: Device, course: Course, window: int) -> None:
        self._device, self._course, self._window = device, course, window
        self._asks: deque[_Ask] = deque()

    @property
    def full(self) -> bool:
        """Whether no more may be asked for now."""
        return len(self._asks) >= self._window

    @property
    def idle(self) -> bool:
        """Whether none is under way."""
        return not self._asks

    @property
    def last_ask(self) -> int | None:
        """The number of the latest ask; None: none is under way."""
        if not self._asks:
            return None
        asked = self._asks[-1].asked
        return asked.ask if isinstance(asked, Stillborn) else asked[0].ask

    @property
    def births(self) -> int:
        """How many of them may still lead to an evaluation."""
        return sum(not isinstance(ask.asked, Stillborn) for ask in self._asks)

    def batch(self) -> Batch:
        """The children under way."""
        batch = Batch()
        for ask in self._asks:
            batch.add(ask.asked, self._course)
        return batch

    def put(self, asked: Stillborn | Birth) -> None:
        """One more ask; its build begins."""
        build = None if isinstance(asked, Stillborn) else self._device.build([asked[1]])[0]
        self._asks.append(_Ask(asked, time.monotonic(), build))

    def built(
        self, idle: Callable[[float], None]
    ) -> tuple[Draft, Admission, Built | Alike | Verdict] | Stillborn:
        """The oldest ask, once its build is done; it stays the oldest until ``settle``.

        Args:
            idle: called when the device has nothing to do, with the seconds that this may last.
        """
        ask = self._asks[0]
        if isinstance(ask.asked, Stillborn):
            return ask.asked
        assert ask.build is not None
        self._until(ask.build, idle)
        return *ask.asked, self._device.built(ask.asked[1], ask.build)

    def judged(self, built: Built) -> Verdict:
        """The verdict on the oldest ask, which is screened now where it was not before."""
        ask = self._asks[0]
        if ask.screening is None:
            ask.screening = self._device.screen(built)
        self._until(ask.screening)
        return self._device.screened(built, ask.screening)

    def drop(self) -> None:
        """No more is wanted: what waits for a core or for the device is not begun."""
        for ask in self._asks:
            for asked in (ask.build, ask.screening):
                if asked is not None:
                    asked.future.cancel()
        self._asks.clear()

    def settle(self) -> None:
        """The oldest ask has ended."""
        self._asks.popleft()

    def _until(self, wanted: Asked[object], idle: Callable[[float], None] | None = None) -> None:
        """Until this is done: what is built meanwhile goes to the device."""
        while True:
            self._screen_ahead()
            if wanted.future.done():
                return
            if idle is not None and not self._measuring():
                idle(self._device.usual_build_s - (time.monotonic() - self._asks[0].begun))
                idle = None
                continue
            builds = (ask.build.future for ask in self._asks if ask.build)
            waited: list[Future[Any]] = [wanted.future, *(build for build in builds if not build.done())]
            wait(waited, return_when=FIRST_COMPLETED)

    def _measuring(self) -> bool:
        return any(ask.screening is not None and not ask.screening.future.done() for ask in self._asks)

    def _screen_ahead(self) -> None:
        """Begin to screen whatever is built and does not look like the work of an earlier kernel."""
        before: set[str] = set()
        for ask in self._asks:
            if ask.build is None or not ask.build.future.done() or ask.build.future.exception() is not None:
                continue
            built = ask.build.future.result()
            if not isinstance(built, Built):
                continue
            work = {sha for sha in (built.artifact_sha, built.timed_sha) if sha is not None}
            known = self._course.twin(built.artifact_sha, built.timed_sha) is not None
            if ask.screening is None and not known and not work & before:
                ask.screening = self._device.screen(built)
            before |= work
