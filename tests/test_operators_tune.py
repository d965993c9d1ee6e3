from __future__ import annotations

from random import Random

import pytest

from operators import Tune, Tuner, configuration, neighbours, space, with_values
from operators.proposal import Operator
from operators.testing import BRIEF, OperatorContract
from populations.kernel import Kernel

SOURCE = """// ROW_BLOCK = 3; is only a comment
constexpr int ROW_BLOCK = 4;  // tune: 1 2 4 8
constexpr int64_t TILE = 64;          // tune: 16 64 256
constexpr int FIXED = 7;  // not to be tuned
extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {}
"""


def measure(source: str) -> float:
    """A smooth hill with its top at ROW_BLOCK = 1 and TILE = 256."""
    values = {name: value for name, (value, _) in space(source).items()}
    return -abs(values["ROW_BLOCK"] - 1) - abs(values["TILE"] - 256) / 100


def test_the_space_is_what_stands_behind_tune() -> None:
    assert space(SOURCE) == {"ROW_BLOCK": (4, (1, 2, 4, 8)), "TILE": (64, (16, 64, 256))}


def test_a_source_without_constants_has_an_empty_space() -> None:
    assert space("int x;") == {} and neighbours("int x;") == ()


def test_setting_a_value_changes_that_number_and_nothing_else() -> None:
    assert with_values(SOURCE, {"TILE": 256}) == SOURCE.replace("TILE = 64;", "TILE = 256;")


def test_setting_an_unknown_constant_says_which_there_are() -> None:
    with pytest.raises(KeyError, match=r"no tuning constant 'FIXED'; there are \['ROW_BLOCK', 'TILE'\]"):
        with_values(SOURCE, {"FIXED": 1})


def test_neighbours_are_one_step_away_in_one_constant() -> None:
    assert sorted(map(configuration, neighbours(SOURCE))) == [(2, 64), (4, 16), (4, 256), (8, 64)]


def test_a_value_outside_its_list_moves_to_the_nearest_allowed_ones() -> None:
    odd = SOURCE.replace("ROW_BLOCK = 4", "ROW_BLOCK = 3")
    assert {configuration(source)[0] for source in neighbours(odd)} == {2, 3, 4}


def test_tune_moves_one_or_two_constants_by_one_step() -> None:
    for seed in range(50):
        child = Tune()([Kernel(SOURCE, "cpp")], BRIEF, Random(seed))
        assert child is not None
        (rows, tile) = configuration(child.kernel.source)
        assert rows in (2, 4, 8) and tile in (16, 64, 256) and (rows, tile) != (4, 64)


def test_tune_has_nothing_to_offer_without_constants() -> None:
    assert Tune()([Kernel("int x;", "cpp")], BRIEF, Random(0)) is None


def test_the_tuner_climbs_to_the_top_and_stops() -> None:
    tuner = Tuner(SOURCE, limit=30)
    results: dict[tuple[int, ...], float | None] = {}
    while (source := tuner.next(results)) is not None:
        assert configuration(source) not in results
        results[configuration(source)] = measure(source)
    assert tuner.best(results) == (1, 256)
    assert len(results) < 12


def test_the_tuner_asks_for_its_parent_first_and_then_at_most_its_limit() -> None:
    tuner = Tuner(SOURCE, limit=2)
    assert tuner.next({}) == SOURCE
    results: dict[tuple[int, ...], float | None] = {configuration(SOURCE): 0.0}
    while (source := tuner.next(results)) is not None:
        results[configuration(source)] = -1.0
    assert len(results) == 3


def test_the_tuner_goes_on_in_a_direction_that_paid_off() -> None:
    known: dict[tuple[int, ...], float | None] = {(4, 64): 0.0, (2, 64): 1.0}
    asked = Tuner(SOURCE).next(known)
    assert asked is not None and configuration(asked) == (1, 64)


def test_a_failed_configuration_is_neither_best_nor_asked_for_again() -> None:
    tuner = Tuner(SOURCE)
    known: dict[tuple[int, ...], float | None] = {(4, 64): 0.0, (4, 256): None}
    assert tuner.best(known) == (4, 64)
    asked = tuner.next(known)
    assert asked is not None and configuration(asked) not in known


def test_where_all_failed_there_is_no_best_and_nothing_more_to_try() -> None:
    assert Tuner(SOURCE).best({(4, 64): None}) is None
    assert Tuner(SOURCE).next({(4, 64): None}) is None


class TestTune(OperatorContract):
    @pytest.fixture
    def operator(self) -> Operator:
        return Tune()
