"""Rounds in which the baseline was in a slow mode: some are taken again, and none makes a kernel look fast.

The usual time stands for a slow baseline in any case (``statistics.fair``), so taking rounds again is for the
kernel's sake: in the same round it may have been slow as well. It must not cost the search its time, though.
A mode may last for minutes, and the usual time may be that of a fast mode which never comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fitness.judge.statistics import well_above

SHARE = 0.25  # of all rounds so far that may be taken again
HOPE = 3  # slow ones in a row: the mode lasts, and is not waited for

Round = tuple[float, float]  # seconds per call of the baseline and of the kernel


class Retaking:
    """Takes slow rounds of one stand again, while that costs little.

    Args:
        noise: half-width of an A/A measurement, of log ratios.
    """

    def __init__(self, noise: float) -> None:
        self._noise = noise
        self._taken = self._again = 0

    def mended(
        self, base: Sequence[float], times: Sequence[float], usual: float, again: Callable[[], Round]
    ) -> tuple[list[float], list[float]]:
        """Samples of the baseline and of the kernel, slow rounds replaced as far as that was worth it.

        A round goes as a whole: the kernel's sample with the baseline's.

        Args:
            base, times: samples of the baseline and of the kernel, one a round.
            usual: the baseline's time when the machine was calibrated.
            again: takes one more round.
        """
        base, times = list(base), list(times)
        slow = [n for n, sample in enumerate(base) if self._slow(sample, usual)]
        self._taken += len(base)
        hope = HOPE
        while slow and hope and self._again < SHARE * self._taken:
            self._again += 1
            sample, seconds = again()
            if self._slow(sample, usual):
                hope -= 1
                continue
            at, hope = slow.pop(), HOPE
            base[at], times[at] = sample, seconds
        return base, times

    def _slow(self, sample: float, usual: float) -> bool:
        return well_above(sample, usual, self._noise)
