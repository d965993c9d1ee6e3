"""The fused check of timed outputs says what the plain comparison says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import torch

from fitness.judge.bounds import bounds
from fitness.judge.checker import TWICE, checker
from fitness.judge.compare import compare
from fitness.judge.cuda.sets import DeviceSets
from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.problem import load
from fitness.judge.quick import Quick, quick
from fitness.judge.rig import WrongOutput

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit:DeprecationWarning"
)  # in the compiler's own imports


@pytest.fixture(scope="module")
def softmax() -> LoadedCase:
    problem = load("softmax", seed=0, cache_bytes=32 << 20, memory_bytes=4 << 30)
    return next(each for each in problem.cases if each.case.name == "24x1000-large")


@pytest.fixture(scope="module")
def fused(softmax: LoadedCase) -> Quick:
    found = quick(softmax, TWICE)
    assert found is not None
    return found


@pytest.fixture
def sets(softmax: LoadedCase) -> Iterator[DeviceSets]:
    """One set, with the right outputs."""
    with closing(DeviceSets(softmax.case.arguments, 1, 1)) as made:
        made.inputs(0)[0].normal_()
        made.poison(0, 1)
        made.outputs(0)[0].copy_(torch.softmax(made.inputs(0)[0], -1))
        yield made


def test_it_gives_the_number_of_the_plain_comparison(
    softmax: LoadedCase, fused: Quick, sets: DeviceSets
) -> None:
    x, out = sets.inputs(0)[0], sets.outputs(0)[0]
    out[3, 5] *= 1 + 1e-4
    want = [torch.softmax(x, -1)]
    allowed = bounds(softmax.tolerance, [x], [], want, softmax.case.outputs)
    plain = compare([out], want, allowed, scale=TWICE).max_error
    assert plain > 1
    assert fused.errors([(Draw([x], []), [out])]) == [pytest.approx(plain, rel=1e-3)]


def test_right_outputs_pass(softmax: LoadedCase, fused: Quick, sets: DeviceSets) -> None:
    checker(softmax, quick=fused)(sets, 1)
    assert fused.errors([(Draw(sets.inputs(0), []), sets.outputs(0))])[0] <= 1


@pytest.mark.parametrize("wrong", [0.9, float("nan"), float("inf")])
def test_one_wrong_element_is_refused_with_its_place(
    softmax: LoadedCase, fused: Quick, sets: DeviceSets, wrong: float
) -> None:
    sets.outputs(0)[0][7, 11] = wrong
    with pytest.raises(WrongOutput) as refusal:
        checker(softmax, quick=fused)(sets, 1)
    assert refusal.value.evidence is not None
    assert refusal.value.evidence.index == (7, 11)


def test_tensors_of_other_shapes_are_left_to_the_plain_comparison(fused: Quick) -> None:
    x = torch.randn(3, 5)
    assert fused.errors([(Draw([x], []), [torch.softmax(x, -1)])]) == [float("inf")]


def test_a_bound_of_very_many_steps_is_not_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fitness.judge.quick.MOST_STEPS", 40)
    problem = load("attention", seed=0, cache_bytes=32 << 20, memory_bytes=4 << 30)
    assert quick(problem.cases[0], TWICE) is None
