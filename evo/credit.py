"""What a child earned: only what its measurement shows beyond doubt.

A kernel's speed is known within bounds. A child earns the distance from the upper bound of its best ancestor
up to its own lower bound, and nothing where the two overlap: a lucky measurement of an equal kernel earns
nothing.
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
        self._forebear: dict[int, int] = {}  # the best among a kernel and its ancestors
        self._best_first: list[tuple[float, int]] = []  # a heap; entries that no longer hold are passed over

    def note(self, id: int, verdict: Verdict, parents: tuple[int, ...] = ()) -> Bounds | None:
        """Take in a kernel's latest verdict; what it says."""
        found = bounds(verdict)
        if found is None:
            self._bounds.pop(id, None)
        else:
            self._bounds[id] = found
            heappush(self._best_first, (-found.low, id))
        line = [id, *(self._forebear[parent] for parent in parents if parent in self._forebear)]
        measured = [one for one in line if one in self._bounds]
        if measured:
            self._forebear[id] = max(measured, key=lambda one: self._bounds[one].low)
        return found

    def bar(self, parents: tuple[int, ...]) -> float | None:
        """What a newcomer has to rise above: its best ancestor, else the champion; None: there is neither."""
        above = self.ancestor(parents)
        return self.champion() if above is None else above

    def ancestor(self, parents: tuple[int, ...]) -> float | None:
        """The upper bound of the best ancestor; None: none was measured.

        An operator that mends what another one broke has to come out ahead of what was there before.
        """
        line = [self._forebear[parent] for parent in parents if parent in self._forebear]
        known = [self._bounds[one] for one in line if one in self._bounds]
        return max(known, key=lambda one: one.low).high if known else None

    def champion(self) -> float | None:
        """The upper bound of the kernel with the highest lower bound; None: none is measured."""
        while self._best_first:
            low, id = self._best_first[0]
            if id in self._bounds and self._bounds[id].low == -low:
                return self._bounds[id].high
            heappop(self._best_first)
        return None
