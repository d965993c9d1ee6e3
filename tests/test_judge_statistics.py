"""From rounds to claims."""

from __future__ import annotations

import numpy as np
import pytest

from fitness.judge.statistics import (
    fair,
    half_width,
    interval95,
    log_ratios,
    lower_bound95,
    median,
    well_above,
)


def rounds(mean: float, spread: float, count: int, seed: int) -> list[float]:
    return list(np.random.default_rng(seed).normal(mean, spread, count))


def test_the_interval_of_the_median_covers_the_truth_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(300):
        low, high = interval95(rounds(1.0, 0.1, 15, seed))
        covered += low <= 1.0 <= high
    assert 0.90 <= covered / 300 <= 1.0


def test_the_lower_bound_is_above_the_truth_in_about_one_of_twenty_measurements() -> None:
    above = sum(lower_bound95(rounds(0.0, 0.05, 15, seed)) > 0.0 for seed in range(400))
    assert above / 400 <= 0.09


def test_one_wild_round_does_not_move_a_claim() -> None:
    ratios = rounds(0.3, 0.01, 15, 1)
    assert lower_bound95([*ratios[:-1], -5.0]) == pytest.approx(lower_bound95(ratios), abs=0.02)


def test_log_ratios_are_positive_where_the_candidate_is_faster() -> None:
    assert log_ratios([2.0, 1.0], [1.0, 2.0]) == pytest.approx([np.log(2), -np.log(2)])


def test_the_noise_of_a_baseline_against_itself_is_the_farther_end_of_its_interval() -> None:
    assert half_width([0.01] * 15) == pytest.approx(0.01)
    assert half_width([-0.02] * 15) == pytest.approx(0.02)


def test_the_same_samples_give_the_same_interval() -> None:
    assert interval95([1.0, 2.0, 3.0, 2.5]) == interval95([1.0, 2.0, 3.0, 2.5])
    assert median([3.0, 1.0, 2.0]) == 2.0


USUAL, NOISE = 460e-6, 0.02


def test_a_baseline_near_its_usual_time_is_taken_as_it_was_measured() -> None:
    near = [450e-6, 470e-6, 480e-6]
    assert fair(near, USUAL, NOISE) == (near, USUAL)


def test_a_baseline_in_a_slow_mode_counts_for_its_usual_time_at_the_most() -> None:
    samples, usual = fair([1400e-6, 1390e-6, 440e-6], USUAL, NOISE)
    assert samples == [USUAL, USUAL, 440e-6]
    assert usual == USUAL


def test_no_kernel_looks_faster_beside_a_slow_baseline_than_beside_a_usual_one() -> None:
    kernel = [340e-6] * 3
    usual = median(log_ratios([USUAL] * 3, kernel))
    slow, _ = fair([1400e-6, 1410e-6, 1420e-6], USUAL, NOISE)
    assert median(log_ratios(slow, kernel)) <= usual


def test_a_baseline_calibrated_in_a_slow_mode_gets_its_faster_time() -> None:
    samples = [460e-6, 462e-6, 458e-6]
    assert fair(samples, 1400e-6, NOISE) == (samples, 460e-6)


def test_a_noisy_machine_needs_more_than_ten_percent_to_tell_a_mode() -> None:
    assert well_above(1.2, 1.0, 0.01)
    assert not well_above(1.08, 1.0, 0.001)
    assert not well_above(1.2, 1.0, 0.1)
