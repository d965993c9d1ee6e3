"""Who is measured again for a claim, and when: challengers while a search goes on, finalists at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from evo.confirming import confirmation, confirmed
from evo.course import Course
from evo.device import Asked, Device
from evo.settings import Settings
from evo.watcher import Watcher
from fitness.target import Built
from populations.events import Event, Promoted
from populations.individual import Individual
from populations.kernel import Kernel
from populations.state import State
from populations.verdict import Verdict

WELL_MEASURED = 10  # kernels that idle device time goes to
PROMOTION_SHARE = 0.15  # of device time, before the closing measurements
CLOSING_SHARE = 1 / 3  # of the time that a run may take, kept for them at most: few promotions tell little
OVERTIME = 1.5  # times what it may take, after which closing measurements are left out


class Promotions:
    """Measures again whoever seems to beat the champion, and whom the closing table will name.

    Args:
        state, course: what is known.
        settings: the finalists, and the time.
        device: measures.
        kernel_of: the kernel of an individual.
        tell: logs events.
        watcher: told what happens.
    """

    def __init__(
        self,
        state: State,
        course: Course,
        settings: Settings,
        device: Device,
        kernel_of: Callable[[int], Kernel],
        tell: Callable[..., None],
        watcher: Watcher,
    ) -> None:
        self._state, self._course, self._settings, self._device = state, course, settings, device
        self._kernel, self._tell, self._watcher = kernel_of, tell, watcher
        self._begun: tuple[int, Asked[Verdict]] | None = None

    @property
    def closing_s(self) -> float:
        """Wall time to keep for the closing measurements, by what promotions took so far."""
        closing = 1.1 * (self._settings.finalists + 1) * self._course.usual_promotion_s
        minutes = self._settings.minutes
        return closing if minutes is None else min(closing, CLOSING_SHARE * 60.0 * minutes)

    def crown(self, built: Mapping[int, Built]) -> None:
        """Measure again whoever seems to beat the champion: what people see as best was measured twice.

        Args:
            built: kernels that need no further build, by id.
        """
        while (challenger := self._challenger()) is not None:
            self._promote(challenger.id, built.get(challenger.id))

    def beside(self) -> None:
        """What the last challenger came to, and the next one on its way beside the search."""
        self._end_begun()
        if (challenger := self._challenger()) is not None:
            self._begun = challenger.id, self._device.promotion(self._kernel(challenger.id))

    def meanwhile(self, idle_s: float) -> None:
        """The device waits for a build: it measures one of the best for a claim, if there is time.

        Args:
            idle_s: how long that may last.
        """
        if self._begun is not None or not 0 < self._course.longest_promotion_s < idle_s:
            return
        for one in list(self._state.archive)[:WELL_MEASURED]:
            if not self._state.champion(one.id):
                self._promote(one.id)
                break

    def finish(self, wall_s: Callable[[], float]) -> None:
        """Measure the finalists again, and run the best kernel's exported file.

        Args:
            wall_s: seconds that the run took, up to now.
        """
        self._end_begun()
        self._close(wall_s)
        self._confirm(wall_s)

    def _end_begun(self) -> None:
        """The verdict of a promotion that was begun."""
        if self._begun is not None:
            id, promotion = self._begun
            self._begun = None
            self._tell(Promoted(id, self._device.promoted(self._kernel(id), promotion)))

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

    def _promote(self, id: int, ready: Built | None = None) -> None:
        self._watcher.doing("measuring a champion again")
        built = ready or self._device.rebuild(self._kernel(id))
        self._tell(Promoted(id, self._device.promote(built) if isinstance(built, Built) else built))

    def _close(self, wall_s: Callable[[], float]) -> None:
        """Measure the finalists again, unless nothing was judged since; whoever moves up has to pass too."""
        for _ in range(2 * self._settings.finalists + 2):
            stale = [id for id in self._finalists() if id not in self._course.fresh]
            if not stale:
                break
            if wall_s() > OVERTIME * 60.0 * (self._settings.minutes or math.inf):
                self._watcher.note(f"no time is left to measure {_named(stale)} again: earlier claims stand")
                break
            self._promote(stale[0])

    def _confirm(self, wall_s: Callable[[], float]) -> None:
        """Run the best kernel's exported file. One that does other things falls, and the next is run."""
        for _ in range(self._settings.finalists + 1):
            best = self._state.best
            if best is None or confirmed(best, self._state):
                return
            self._watcher.doing("running what is exported")
            events: Sequence[Event] = confirmation(best, self._kernel(best.id), self._state, self._device)
            self._tell(*events)
            if not any(isinstance(event, Promoted) for event in events):
                return
            self._close(wall_s)

    def _finalists(self) -> list[int]:
        """The best few and the best starting kernel."""
        best = [one.id for one in self._state.archive][: self._settings.finalists]
        seeds = [id for id in self._course.seeds if self._state.rank(id) is not None]
        return [*best, *sorted(seeds, key=lambda id: -(self._state.rank(id) or 0.0))[:1]]


def _named(ids: Sequence[int]) -> str:
    return ("kernel " if len(ids) == 1 else "kernels ") + ", ".join(map(str, ids))
