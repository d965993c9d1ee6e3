"""What a run's agents found out that is no kernel: diagnoses, and lessons that have to prove themselves.

All of it is a fold over events, so a resumed run knows what it knew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from evo.errands import COUNSEL, PROBE
from evo.lessons import KEPT_BACK, Held
from operators.agents.diagnose import Diagnose
from operators.agents.reflect import Reflect
from populations.events import (
    Certainty,
    Diagnosed,
    Event,
    Judged,
    Proposed,
    Reflected,
    Reserved,
    Settled,
    Stillborn,
)
from populations.learned import Diagnosis, Lesson
from populations.state import State
from populations.verdict import Verdict

RESULTS = 64  # judged kernels that a reflection is told of at most, the latest ones


class Memory:
    """Diagnoses and lessons after the events so far.

    Args:
        state: the population; each event is applied to it first.
        noise: of measured ranks: what a child has to be better by.

    Attributes:
        calls: of agents, counsel included.
        counsels: calls whose answer is no kernel.
        asked: kernels for which a diagnosis was asked.
        diagnoses: by kernel.
        lessons: those in force, the most useful first.
        dropped: texts of those that did not hold, the latest last.
        judged: kernels since the last reflection, steps of the tuner left out.
        recent: the latest of them.
    """

    def __init__(self, state: State, noise: Callable[[], float]) -> None:
        self._state, self._noise = state, noise
        self.calls = self.counsels = self.judged = 0
        self.asked: set[int] = set()
        self.diagnoses: dict[int, Diagnosis] = {}
        self.lessons: list[Held] = []
        self.dropped: list[str] = []
        self.recent: deque[int] = deque(maxlen=RESULTS)
        self._learned = 0
        self._lots: dict[str, dict[int, bool]] = {}  # call → lesson → whether the author was told
        self._born: dict[int, Proposed] = {}  # not judged yet

    def apply(self, event: Event) -> None:
        """Take in an event; proposals of the tuner are none of its business."""
        match event:
            case Reserved() if event.operator != PROBE:
                self._reserve(event)
            case Settled():
                if event.failure is not None or event.certainty is Certainty.UNKNOWN:
                    self._lots.pop(event.call, None)  # there is no child to tell of it
            case Diagnosed(_, id, diagnosis) if diagnosis is not None:
                self.diagnoses[id] = diagnosis
            case Reflected(_, lessons) if lessons is not None:
                self._learn(lessons)
            case Stillborn():
                self._count(event, better=False)
            case Proposed():
                self._born[event.id] = event
            case Judged(id, verdict) if id in self._born:
                born = self._born.pop(id)
                self.judged += 1
                self.recent.append(id)
                self._count(born, self._better(born, verdict))

    def lot(self, rng: Random) -> tuple[list[Held], list[Held]]:
        """The lessons that the next author is told, the most useful first, and those that are kept back."""
        told: list[Held] = []
        untold: list[Held] = []
        for held in self.lessons:
            (untold if rng.random() < KEPT_BACK else told).append(held)
        return told, untold

    def _reserve(self, event: Reserved) -> None:
        self.calls += 1
        self.counsels += event.operator in COUNSEL
        if event.operator == Diagnose.name:
            self.asked.update(event.parents)
        elif event.operator == Reflect.name and event.again is None:
            self.judged = 0
            self.recent.clear()
        elif event.lessons or event.untold:
            lots = dict.fromkeys(event.lessons, True) | dict.fromkeys(event.untold, False)
            self._lots[event.call] = lots

    def _better(self, born: Proposed, verdict: Verdict) -> bool:
        """Whether a child is better than its best parent; of a mended kernel, whether it is measured."""
        if verdict.rank is None:
            return False
        before = self._state.best_rank(born.parents)
        return before is None or verdict.rank > before + self._noise()

    def _count(self, end: Proposed | Stillborn, better: bool) -> None:
        """What came of a child; one without parents says nothing of lessons."""
        lots = self._lots.pop(end.call, None) if end.call is not None else None
        if lots is None or not end.parents:
            return
        for held in self.lessons:
            if held.number in lots:
                held.count(lots[held.number], better)
        self.dropped += [held.lesson.text for held in self.lessons if not held.holds]
        self.lessons = sorted(
            (held for held in self.lessons if held.holds), key=lambda held: (-held.score, held.number)
        )

    def _learn(self, lessons: tuple[Lesson, ...]) -> None:
        """Lessons that stay keep what is known of them; one that did not hold is not learned again."""
        known = {held.lesson.text: held for held in self.lessons}
        found: list[Held] = []
        for lesson in lessons:
            if lesson.text in known:
                known[lesson.text].lesson = lesson
                found.append(known[lesson.text])
            elif lesson.text not in self.dropped:
                self._learned += 1
                found.append(Held(self._learned, lesson))
        self.lessons = sorted(found, key=lambda held: (-held.score, held.number))
