"""What a child earned: only what its measurement shows beyond doubt.

A kernel's speed is known within bounds. A child earns the distance from its parents' upper bound up to its
own lower bound, and nothing where the two overlap: a lucky measurement of an equal kernel earns nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import fmean

from populations.verdict import Outcome, Timing, Verdict

FLOORS = 2.0  # noise floors around the median of a screen, which has no interval


@dataclass(frozen=True)
class Bounds:
    """Within what a kernel's log speed-up lies."""

    low: float
    high: float


def bounds(verdict: Verdict) -> Bounds | None:
    """Of a claim the ends of its interval, of a screen its median less and plus two noise floors; means over
    the timed cases. None: it was not measured."""
    if verdict.status is not Outcome.MEASURED or verdict.rank is None:
        return None
    highs = [_high(case.timings[0]) for case in verdict.cases if case.timings]
    return Bounds(verdict.rank, max(verdict.rank, fmean(highs) if highs else verdict.rank))


def _high(timing: Timing) -> float:
    if timing.fitness is not None:
        return math.log(timing.speedup_ci95[1])
    return math.log(timing.speedup) + FLOORS * timing.noise_floor


class Standings:
    """The latest bounds of every measured kernel; what they say a newcomer has to rise above."""

    def __init__(self) -> None:
        self._bounds: dict[int, Bounds] = {}
        self._best_first: list[tuple[float, int]] = []  # a heap; entries that no longer hold are passed over

    def note(self, id: int, verdict: Verdict) -> Bounds | None:
        """Take in a kernel's latest verdict; what it says."""
        found = bounds(verdict)
        if found is None:
            self._bounds.pop(id, None)
        else:
            self._bounds[id] = found
            heappush(self._best_first, (-found.low, id))
        return found

    def bar(self, parents: tuple[int, ...]) -> float | None:
        """The upper bound of the best parent that was measured, else of the champion; None: there is none.

        The champion is the kernel with the highest lower bound.
        """
        known = [self._bounds[id] for id in parents if id in self._bounds]
        if known:
            return max(known, key=lambda one: one.low).high
        while self._best_first:
            low, id = self._best_first[0]
            if id in self._bounds and self._bounds[id].low == -low:
                return self._bounds[id].high
            heappop(self._best_first)
        return None
