"""Operators are chosen by what their children gained, beyond doubt, for what they cost."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest

from evo.arms import Arm, Weights
from evo.bandit import Bandit
from evo.credit import Standings, bounds
from evo.settings import Settings, settings
from populations.events import Event, Judged, Promoted, Proposed, Reserved, Settled, Stillborn
from populations.verdict import CaseVerdict, Outcome, Stage, Timing, Verdict

FLOOR = 0.01
GOOD, POOR = Arm("good"), Arm("poor")


def screened(gain: float, device_s: float = 0.0) -> Verdict:
    """Measured for a rank only: no interval."""
    return measured(gain, None, gain - 2 * FLOOR, (0.0, 0.0), device_s)


def claimed(low: float, high: float) -> Verdict:
    """Measured with the rounds that a claim needs."""
    return measured((low + high) / 2, low, low, (low, high))


def measured(
    gain: float, fitness: float | None, rank: float, ci: tuple[float, float], device_s: float = 0.0
) -> Verdict:
    timing = Timing(
        policy="warm", median=1e-3, ci95=(1e-3, 1e-3), baseline="eager", baseline_median=1e-3,
        speedup=math.exp(gain), speedup_ci95=(math.exp(ci[0]), math.exp(ci[1])), fitness=fitness,
        noise_floor=FLOOR, rank=rank, gbps=1.0, tflops=None, samples=(), baseline_samples=(),
    )  # fmt: skip
    case = CaseVerdict("given", False, False, Outcome.MEASURED, timings=(timing,))
    return Verdict(
        Outcome.MEASURED, Stage.TIMING, "measured", cases=(case,), rank=rank, device_s=device_s
    )  # fmt: skip


def failed() -> Verdict:
    return Verdict(Outcome.INCORRECT, Stage.SMOKE, "wrong")


def born(id: int, operator: str, *parents: int, model: str | None = None) -> Proposed:
    return Proposed(id, id, f"{id}", f"{id}", "cpp", parents, operator, "made up", model=model)


def after(*events: Event, weights: Weights | None = None) -> Bandit:
    bandit = Bandit(weights)
    bandit.apply(born(1, "seed"), chosen=False)
    for event in (Judged(1, claimed(0.0, 0.02)), *events):
        bandit.apply(event)
    return bandit


def asked(operator: str, first: int, count: int, verdict: Verdict) -> list[Event]:
    """So many children of the seed, all with the same verdict."""
    ids = range(first, first + count)
    return [event for id in ids for event in (born(id, operator, 1), Judged(id, verdict))]


def firsts(bandit: Bandit, *arms: Arm, weights: tuple[float, ...] | None = None) -> Counter[Arm]:
    """Which arm came first, in 400 asks."""
    return Counter(arms[bandit.order(arms, Random(seed), weights)[0]] for seed in range(400))


def test_a_screen_is_known_within_two_noise_floors() -> None:
    found = bounds(screened(0.3))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.28, 0.32))


def test_a_claim_is_known_within_its_interval() -> None:
    found = bounds(claimed(0.2, 0.5))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.2, 0.5))


def test_a_child_without_measured_parents_has_to_beat_the_champion() -> None:
    standings = Standings()
    assert standings.bar(()) is None
    standings.note(1, claimed(0.1, 0.2))
    standings.note(2, claimed(0.3, 0.4))
    assert standings.bar(()) == pytest.approx(0.4)
    standings.note(2, failed())
    assert standings.bar((2,)) == pytest.approx(0.2)


def test_mending_what_another_operator_broke_earns_nothing() -> None:
    events: list[Event] = []
    for id in range(2, 42, 2):
        events += [born(id, "poor", 1), Judged(id, screened(-0.5) if id % 4 else failed())]
        events += [born(id + 1, "good", id), Judged(id + 1, screened(0.0))]
    assert 150 < firsts(after(*events), GOOD, POOR)[GOOD] < 250


def test_the_operator_whose_children_gain_is_asked_first() -> None:
    bandit = after(*asked("good", 2, 20, screened(0.3)), *asked("poor", 22, 20, screened(-0.1)))
    assert firsts(bandit, GOOD, POOR)[GOOD] > 350


def test_a_lucky_measurement_earns_nothing() -> None:
    lucky = asked("good", 2, 20, screened(0.035))  # above the parent, within the bounds of both
    bandit = after(*lucky, *asked("poor", 22, 20, screened(-0.1)))
    assert 150 < firsts(bandit, GOOD, POOR)[GOOD] < 250


def test_a_promotion_takes_back_what_a_screen_earned() -> None:
    refuted = [Promoted(id, claimed(0.0, 0.01)) for id in range(2, 22)]
    bandit = after(*asked("good", 2, 20, screened(0.3)), *asked("poor", 22, 20, failed()), *refuted)
    assert 150 < firsts(bandit, GOOD, POOR)[GOOD] < 250


def test_a_promotion_that_fails_takes_it_back_as_well() -> None:
    refuted = [Promoted(id, failed()) for id in range(2, 22)]
    bandit = after(*asked("good", 2, 20, screened(0.3)), *asked("poor", 22, 20, failed()), *refuted)
    assert 150 < firsts(bandit, GOOD, POOR)[GOOD] < 250


def test_failures_cost_and_earn_nothing() -> None:
    gains = [*asked("good", 2, 4, screened(0.3)), *asked("poor", 6, 4, screened(0.3))]
    wasted = [Stillborn(id, "poor", (1,), "a duplicate") for id in range(10, 40)]
    assert firsts(after(*gains, *wasted), GOOD, POOR)[GOOD] > 350


def test_an_operator_whose_children_are_known_already_is_used_less() -> None:
    stale = [Stillborn(id, "poor", (1,), "a duplicate") for id in range(22, 42)]
    assert firsts(after(*asked("good", 2, 20, failed()), *stale), GOOD, POOR)[GOOD] > 300


def test_equal_gains_at_a_tenth_of_the_cost_are_asked_for_first() -> None:
    weights = Weights(ask=0.0, device_s=1.0)
    cheap, dear = asked("good", 2, 20, screened(0.3, 0.1)), asked("poor", 22, 20, screened(0.3, 1.0))
    assert firsts(after(*cheap, *dear, weights=weights), GOOD, POOR)[GOOD] > 350


def test_what_a_model_costs_is_told_by_its_calls() -> None:
    dear, cheap = Arm("mutate", "large"), Arm("mutate", "small")
    events: list[Event] = []
    for n, model in enumerate(["large", "small"] * 20):
        id = n + 2
        events += [
            Reserved(f"{id}", id, "mutate", model, 5000, 0.5),
            Settled(f"{id}", 1000, 0.4 if model == "large" else 0.01),
            born(id, "mutate", 1, model=model),
            Judged(id, screened(0.3)),
        ]
    assert firsts(after(*events, weights=Weights(ask=0.0, usd=1.0)), dear, cheap)[cheap] > 350


def test_arms_of_which_nothing_is_known_are_asked_all() -> None:
    assert all(150 < count < 250 for count in firsts(after(), GOOD, POOR).values())


def test_what_nobody_chose_says_nothing_of_an_arm() -> None:
    bandit = after()
    for event in asked("good", 2, 20, screened(0.3)):
        bandit.apply(event, chosen=False)
    assert 150 < firsts(bandit, GOOD, POOR)[GOOD] < 250


def test_old_gains_are_forgotten() -> None:
    once = asked("good", 2, 20, screened(0.3))
    since = asked("poor", 22, 8000, failed())
    assert firsts(after(*once, *since), GOOD, Arm("new"))[GOOD] < 350


def test_a_users_weight_multiplies_what_is_drawn() -> None:
    assert firsts(after(), GOOD, POOR, weights=(1.0, 100.0))[POOR] > 350


def test_the_same_events_and_chance_give_the_same_order() -> None:
    events = [*asked("good", 2, 5, screened(0.3)), *asked("poor", 7, 5, failed())]
    arms = [GOOD, POOR, Arm("new"), Arm("mutate", "small")]
    one, other = after(*events), after(*events)
    other.order(arms, Random(0))  # asking changes nothing
    assert [one.order(arms, Random(n)) for n in range(50)] == [
        other.order(arms, Random(n)) for n in range(50)
    ]


def test_budgets_say_what_expenses_are_worth() -> None:
    weights = Weights.of(settings(minutes=10.0, usd=5.0), parallel=4)
    assert weights.usd == pytest.approx(1 / 5)
    assert weights.device_s == pytest.approx(1 / 600)
    assert weights.seconds == pytest.approx(1 / 2400)
    assert weights.tokens == 0.0
    assert Weights.of(settings(evaluations=50)).ask == pytest.approx(1 / 50)
    assert 0 < Weights.of(Settings(usd=5.0)).ask < 0.01
