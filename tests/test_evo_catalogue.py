"""What the command line tells of problems on a GPU, where there need not be one."""

from __future__ import annotations

import pytest

from evo import catalogue
from fitness.card import Case, TensorSpec


def case(dtype: str, moved: int, flops: int) -> Case:
    spec = TensorSpec("x", (8,), dtype)
    return Case("8", {}, None, False, False, True, (spec,), (), (spec,), moved, flops)


def test_the_floor_is_the_longer_of_moving_and_computing() -> None:
    moving = catalogue.floor(case("bfloat16", moved=43 * 10**8, flops=1))
    assert (moving["floor_us"], moving["limited_by"]) == (pytest.approx(1000), "bytes")
    computing = catalogue.floor(case("bfloat16", moved=1, flops=79 * 10**10))
    assert (computing["floor_us"], computing["limited_by"]) == (pytest.approx(1000), "operations")


def test_a_float32_product_takes_six_times_as_long() -> None:
    assert catalogue.floor(case("float32", moved=1, flops=79 * 10**10))["floor_us"] == pytest.approx(6000)


def test_a_problem_is_described_in_the_sizes_of_a_gpu_without_one() -> None:
    card = catalogue.card("attention", catalogue.GPU)
    assert card.given.inputs[0] == TensorSpec("q", (4, 32, 4096, 128), "bfloat16")
    assert catalogue.entry(card, catalogue.GPU) == "def kernel_function(q, k, v):  # returns out"
    told = dict(catalogue.lines(card, catalogue.GPU))
    assert told["floor"] == "696 us, by its operations, at 4.3 TB/s and 790 TFLOP/s (nominal H200)"


def test_all_problems_are_listed_with_their_floors() -> None:
    listed = catalogue.problems(catalogue.GPU)
    assert len(listed) == len(catalogue.problems())
    assert all(each["floor_us"] > 10 and each["floor_of"] == catalogue.NOMINAL for each in listed)
    assert {len(row) for row in catalogue.rows(listed)} == {5}
