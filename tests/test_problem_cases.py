"""Derived cases of plain files, and the mutant check that proves that a gate can tell right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fitness.judge.mutants import UNPOLICED, strengthen
from fitness.judge.problem import Draw, LoadedCase, load
from fitness.target import ProblemError
from tests.samples import (
    SAMPLES,
    one_thread,  # noqa: F401 -- for all tests here
    sample,
)


def gate(allowed: float) -> object:
    """Largest error relative to the largest element, in units of what is allowed."""

    def judge(loaded: LoadedCase, draw: Draw, outputs: list[torch.Tensor]) -> float:
        worst = 0.0
        for got, want in zip(outputs, loaded.reference(draw.inputs, draw.parameters), strict=True):
            error = float((got.double() - want.double()).abs().max()) if got.numel() else 0.0
            worst = max(worst, error / (allowed * max(1.0, float(want.double().abs().max()))))
        return worst

    return judge


STRICT = gate(1e-4)
LOOSE = gate(2e-2)


def test_derived_cases_are_smaller_odd_prime_and_one() -> None:
    derived = [case for case in sample("linear_gelu").card.cases if case.derived]
    names = [case.name for case in derived]
    assert {"batch_size=13", "in_features=61", "batch_size=1", "in_features=1", "batch_size=31"} <= set(names)
    assert len(derived) <= 8
    assert len(names) == len(set(names))
    assert all(not case.timed and not case.held_out for case in derived)


def test_derived_cases_vary_only_what_a_kernel_can_read_off_its_shapes() -> None:
    overridden = {name for case in sample("conv2d").card.cases for name in case.constants}
    assert overridden == {"batch_size", "in_channels", "height", "width"}  # no stride, no kernel size


def test_derived_cases_draw_from_other_distributions_where_the_reference_bears_them() -> None:
    kinds = {case.distribution for case in sample("linear_gelu").card.cases if case.derived}
    assert {None, "normal", "rowscale"} <= kinds


def test_a_size_that_the_reference_does_not_bear_is_left_out(tmp_path: Path) -> None:
    text = (SAMPLES / "batch_norm.py").read_text()
    path = tmp_path / "groups.py"
    path.write_text(
        text.replace("nn.BatchNorm2d(num_features=num_features)", "nn.GroupNorm(4, num_features)")
    )
    cases = load(str(path), seed=1, cache_bytes=1 << 25).cases
    assert {case.case.inputs[0].shape[1] % 4 for case in cases} == {0}
    assert len(cases) > 4


def test_the_given_shape_is_shrunk_before_one_size_is_varied(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "big.py"
    path.write_text(text.replace("batch_size = 16", "batch_size = 2048").replace("dim = 64", "dim = 1024"))
    cards = load(str(path), seed=1, cache_bytes=1 << 25).card.cases
    assert cards[0].bytes == 16 << 20
    assert all(case.bytes <= 4 << 20 for case in cards[1:])


def test_a_given_case_too_large_for_the_machine_is_not_run(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "huge.py"
    path.write_text(
        text.replace("batch_size = 16", "batch_size = 1 << 20").replace("dim = 64", "dim = 1 << 18")
    )
    problem = load(str(path), seed=1, cache_bytes=1 << 25)
    assert problem.card.notes[0] == "given: not run (needs 32768 GB)"
    assert problem.card.given.inputs[0].shape == (1 << 20, 1 << 18)
    assert all(each.case.derived for each in problem.cases)
    assert [each.case.timed for each in problem.cases][:2] == [True, False]
    assert problem.card.policy == "cold"


def test_a_file_without_sizes_has_its_given_case_only(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "fixed.py"
    path.write_text(text.replace("torch.rand(batch_size, dim)", "torch.rand(3, 5)"))
    card = load(str(path), seed=1, cache_bytes=1 << 25).card
    assert len(card.cases) == 1
    assert card.notes[0].startswith("general: not checked")


@pytest.mark.parametrize("name", ["linear_gelu", "batch_norm", "embedding", "triangular", "two_outputs"])
def test_an_honest_problem_is_admitted_as_it_is(name: str) -> None:
    admitted = strengthen(sample(name), STRICT)
    assert [case.name for case in admitted.card.cases] == [case.name for case in sample(name).card.cases]
    assert UNPOLICED not in admitted.card.notes


def test_inputs_that_let_a_constant_pass_are_strengthened() -> None:
    admitted = strengthen(sample("mean_of_uniform"), LOOSE)
    extra = [each.case for each in admitted.cases if each.case.name.startswith("given-")]
    assert extra
    assert not any(case.derived or case.timed or case.held_out for case in extra)
    assert admitted.card.given == sample("mean_of_uniform").card.given
    assert any("checked on" in note for note in admitted.card.notes)


def test_an_identity_on_its_own_inputs_is_strengthened() -> None:
    admitted = strengthen(sample("hard_tanh"), STRICT)
    assert "given-normal" in [case.name for case in admitted.card.cases]


def test_a_constant_function_is_refused_and_the_surrogate_is_named() -> None:
    with pytest.raises(ProblemError, match=r"constant\.py: a kernel that returns zeros passes every check"):
        strengthen(sample("constant"), STRICT)


def test_a_function_that_is_a_straight_line_is_no_reason_to_refuse(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "line.py"
    path.write_text(text.replace("nn.functional.hardtanh(x, min_val=-1.0, max_val=1.0)", "3 * x + 1"))
    strengthen(load(str(path), seed=1, cache_bytes=1 << 25), STRICT)


def test_a_gate_that_lower_precision_passes_is_noted() -> None:
    assert UNPOLICED in strengthen(sample("linear_gelu"), LOOSE).card.notes


def test_one_constant_output_among_others_is_noted(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "two.py"
    path.write_text(text.replace("return nn.functional", "return torch.zeros(3), nn.functional"))
    admitted = strengthen(load(str(path), seed=1, cache_bytes=1 << 25), STRICT)
    assert any(note.startswith("output 0: not policed") for note in admitted.card.notes)


def test_derived_inputs_on_which_the_framework_itself_fails_go_back_to_the_file_s_own() -> None:
    def picky(loaded: LoadedCase, draw: Draw, outputs: list[torch.Tensor]) -> float:
        strange = loaded.case.derived and loaded.case.distribution is not None
        return 2.0 if strange else STRICT(loaded, draw, outputs)  # type: ignore[operator]

    admitted = strengthen(sample("linear_gelu"), picky)
    assert {case.distribution for case in admitted.card.cases} == {None}
