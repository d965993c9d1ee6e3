"""Slow modes of a baseline: what they cost, and that they make no kernel look fast."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fitness.judge.retaking import HOPE, SHARE, Retaking, Round
from fitness.judge.statistics import fair, log_ratios, median

USUAL, SLOW, KERNEL, NOISE = 460e-6, 1400e-6, 340e-6, 0.02
ROUNDS = 15


class Machine:
    """Gives rounds one after another, and counts them."""

    def __init__(self, rounds: Iterable[Round]) -> None:
        self._rounds = iter(rounds)
        self.taken = 0

    def __call__(self) -> Round:
        self.taken += 1
        return next(self._rounds)


def always(base: float, kernel: float = KERNEL) -> Callable[[], Round]:
    return lambda: (base, kernel)


def test_a_slow_round_is_replaced_as_a_whole() -> None:
    machine = Machine([(455e-6, 339e-6)])
    base, times = Retaking(NOISE).mended([USUAL, SLOW, 470e-6], [KERNEL, 700e-6, 342e-6], USUAL, machine)
    assert base == [USUAL, 455e-6, 470e-6]
    assert times == [KERNEL, 339e-6, 342e-6]


def test_a_race_at_the_usual_time_costs_no_round_more() -> None:
    machine = Machine([])
    Retaking(NOISE).mended([USUAL] * ROUNDS, [KERNEL] * ROUNDS, USUAL, machine)
    assert machine.taken == 0


def test_a_mode_that_lasts_is_not_waited_for() -> None:
    machine = Machine([(SLOW, KERNEL)] * 100)
    Retaking(NOISE).mended([SLOW] * ROUNDS, [KERNEL] * ROUNDS, USUAL, machine)
    assert machine.taken == HOPE


def test_a_search_whose_baseline_stays_slow_loses_a_share_of_its_rounds_at_the_most() -> None:
    machine, retaking, races = Machine([(SLOW, KERNEL)] * 1000), Retaking(NOISE), 40
    for _ in range(races):
        retaking.mended([SLOW] * 3, [KERNEL] * 3, USUAL, machine)
    assert machine.taken <= SHARE * 3 * races + 1


def test_whatever_was_taken_again_no_kernel_gains_by_a_slow_mode() -> None:
    honest = median(log_ratios([USUAL] * ROUNDS, [KERNEL] * ROUNDS))
    for slow_rounds in range(ROUNDS + 1):
        raced = [SLOW] * slow_rounds + [USUAL] * (ROUNDS - slow_rounds)
        for again in (always(SLOW), always(USUAL)):
            base, times = Retaking(NOISE).mended(raced, [KERNEL] * ROUNDS, USUAL, again)
            assert median(log_ratios(fair(base, USUAL, NOISE)[0], times)) <= honest
