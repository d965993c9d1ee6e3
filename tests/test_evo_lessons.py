"""What a lesson is worth: a few children told it, beside a few that were not."""

from __future__ import annotations

from random import Random

import pytest

from evo.lessons import KEPT_BACK, LEAST, Held
from populations.learned import Lesson

RUNS, CHILDREN = 200, 60


def followed(told: float, untold: float, seed: int) -> Held:
    """A lesson after children whose chances to be better are these, or where it was dropped."""
    held, rng = Held(1, Lesson("a lesson", (1, 2))), Random(seed)
    while held.holds and held.seen < CHILDREN:
        tell = rng.random() >= KEPT_BACK
        held.count(tell, rng.random() < (told if tell else untold))
    return held


@pytest.mark.parametrize(
    "told, untold, least, most",
    [
        (0.1, 0.4, 0.95, 1.0),
        (0.1, 0.2, 0.6, 0.9),
        (0.2, 0.2, 0.3, 0.6),
        (0.3, 0.15, 0.0, 0.2),
        (0.5, 0.2, 0.0, 0.1),
    ],
)
def test_the_less_a_lesson_helps_the_sooner_it_goes(
    told: float, untold: float, least: float, most: float
) -> None:
    dropped = sum(not followed(told, untold, seed).holds for seed in range(RUNS))
    assert least <= dropped / RUNS <= most


def test_no_lesson_goes_before_enough_children_were_seen() -> None:
    assert min(followed(0.0, 1.0, seed).seen for seed in range(RUNS)) == LEAST


def test_a_lesson_that_nobody_profits_from_or_everybody_does_says_nothing() -> None:
    for better in (False, True):
        held = Held(1, Lesson("a lesson", (1, 2)))
        for n in range(CHILDREN):
            held.count(told=n % 3 > 0, better=better)
        assert abs(held.score) < 0.5 and held.holds


def test_a_lesson_that_held_once_and_ceases_to_is_dropped_in_time() -> None:
    held, rng = Held(1, Lesson("a lesson", (1, 2))), Random(0)
    for n in range(60):
        held.count(told=n % 3 > 0, better=n % 3 > 0)
    assert held.score > 2
    while held.holds and held.seen < 300:
        tell = rng.random() >= KEPT_BACK
        held.count(tell, not tell)
    assert held.seen < 200
