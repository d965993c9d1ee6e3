"""From samples to claims: medians over rounds, and intervals by bootstrap over rounds.

A *round* is one interleaved visit to every contender; its samples share the machine's mood, so rounds, never
single launches, are what is resampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 4000
CLAIM_ROUNDS = 8  # fewer rounds than this support a rank, not a claim
APART, APART_NOISES = 0.10, 3.0  # a baseline off its calibrated time by more than both is in another mode


def bootstrap_medians(values: Sequence[float]) -> NDArray[np.float64]:
    """Medians of ``RESAMPLES`` resamples of the rounds, sorted; the resampling is fixed: results repeat."""
    data = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(len(data))
    picks = rng.integers(0, len(data), size=(RESAMPLES, len(data)))
    return np.sort(np.median(data[picks], axis=1))


def interval95(values: Sequence[float]) -> tuple[float, float]:
    """Two-sided 95 percent interval of the median."""
    medians = bootstrap_medians(values)
    return float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))


def lower_bound95(values: Sequence[float]) -> float:
    """One-sided 95 percent lower bound of the median."""
    return float(np.quantile(bootstrap_medians(values), 0.05))


def log_ratios(baseline: Sequence[float], candidate: Sequence[float]) -> list[float]:
    """Log speed-up of each round: positive where the candidate is faster."""
    return [float(np.log(b / c)) for b, c in zip(baseline, candidate, strict=True)]


def half_width(ratios: Sequence[float]) -> float:
    """Noise of an A/A measurement: the farther end of its 95 percent interval from zero."""
    low, high = interval95(ratios)
    return max(abs(low), abs(high))


def median(values: Sequence[float]) -> float:
    """The median as a plain float."""
    return float(np.median(np.asarray(values, dtype=np.float64)))


def lower_quartile(values: Sequence[float]) -> float:
    """The value that a quarter of them stay below."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), 0.25))


def well_above(seconds: float, usual: float, noise: float) -> bool:
    """Whether a time lies above the usual one by more than chance explains.

    Args:
        seconds: the time.
        usual: what it was when the machine was calibrated.
        noise: half-width of an A/A measurement, of log ratios.
    """
    return math.log(seconds / usual) > max(math.log1p(APART), APART_NOISES * noise)


def fair(samples: Sequence[float], usual: float, noise: float) -> tuple[list[float], float]:
    """A baseline's samples that a claim may be made against, and its usual time from now on.

    A sample taken in a slow mode counts for the usual time: no kernel gains by the mode. A median well below
    the usual time says that that was measured in a slow mode, so it is the usual time from now on.

    Args:
        samples: seconds per call, one a round.
        usual: its time when the machine was calibrated.
        noise: half-width of an A/A measurement, of log ratios.
    """
    seconds = median(samples)
    fair_samples = [usual if well_above(sample, usual, noise) else sample for sample in samples]
    return fair_samples, seconds if well_above(usual, seconds, noise) else usual
