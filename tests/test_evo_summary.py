"""What a finished run says of its winner: no more than was measured."""

from __future__ import annotations

from math import log

import pytest

from evo.summary import Comparison, compared
from populations.calibration import Calibration, Noise
from populations.testing import a_failure, a_measurement


@pytest.mark.parametrize(
    ("ours", "theirs", "noise", "said"),
    [
        (1.60, 1.50, 0.01, Comparison.AHEAD),
        (1.58, 1.57, 0.01, Comparison.LEVEL),  # intervals of one percent overlap
        (1.57, 1.58, 0.01, Comparison.LEVEL),
        (1.60, 1.50, 0.10, Comparison.LEVEL),  # apart, but by less than a baseline differs from itself
        (1.50, 1.60, 0.01, Comparison.BEHIND),
    ],
)
def test_a_kernel_is_ahead_only_beyond_both_intervals_and_the_noise(
    ours: float, theirs: float, noise: float, said: Comparison
) -> None:
    one, other = (a_measurement(log(speedup), claim=True) for speedup in (ours, theirs))
    assert compared(one, other, noise) is said


def test_without_two_claims_nothing_is_compared() -> None:
    claim, rank_only = a_measurement(log(2.0), claim=True), a_measurement(log(1.5))
    assert compared(claim, rank_only, 0.01) is None
    assert compared(claim, a_failure(), 0.01) is None
    assert compared(None, claim, 0.01) is None


def test_the_noise_floor_is_that_of_the_policy_asked_for() -> None:
    noise = (Noise("a", "warm", 0.01), Noise("b", "warm", 0.02), Noise("a", "cold", 0.06))
    calibration = Calibration(baselines=(), noise=noise, floors=(), machine={})
    assert calibration.noise_floor("warm") == 0.02
