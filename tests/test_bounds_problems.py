"""The built-in problems: their cases, their bounds, and that the framework passes its own gate."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Generator, Tensor

from fitness.card import TensorSpec
from fitness.judge.bounds import bounds
from fitness.judge.compare import compare
from fitness.judge.inputs import DISTRIBUTIONS
from fitness.judge.precision import computing_in
from fitness.judge.source import read
from tests.samples import one_thread  # noqa: F401 -- for all tests here

FOLDER = Path(__file__).parents[1] / "fitness" / "problems"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
WIDTHS = [
    pytest.param(name, width, id=f"{name}-{bits}")
    for name in NAMES
    for bits, width in ((32, {}), (16, {"BITS": 16}))
    if bits == 32 or "BITS" in read(FOLDER / f"{name}.py").constants
]


def problem(name: str, **constants: int) -> ModuleType:
    return read(FOLDER / f"{name}.py").execute(constants)


def run(model: torch.nn.Module, inputs: list[Tensor]) -> list[Tensor]:
    with torch.no_grad():
        outputs: Any = model(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def run_wide(model: torch.nn.Module, inputs: list[Tensor]) -> list[Tensor]:
    model.double()
    with computing_in(torch.float64):
        return run(model, wide(inputs))


def wide(tensors: list[Tensor]) -> list[Tensor]:
    return [t.double() if t.is_floating_point() else t for t in tensors]


def drawn(module: ModuleType, distribution: str | None, seed: int) -> list[Tensor]:
    torch.manual_seed(seed)
    rng = Generator().manual_seed(seed)
    own = module.get_inputs()
    if distribution is None:
        return own  # type: ignore[no-any-return]
    draw = DISTRIBUTIONS[distribution]
    return [draw(tuple(t.shape), t.dtype, rng).to(t.dtype) if t.is_floating_point() else t for t in own]


def test_there_are_ten_of_both_machines_and_nine_for_gpus() -> None:
    assert len(NAMES) == 19


@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_gets_sizes_of_its_own_and_reads_bfloat16_where_the_file_can(name: str) -> None:
    module = problem(name)
    sizes = module.SIZES["cuda"]
    assert all(type(getattr(module, constant)) is int for constant in sizes)
    assert sizes.get("BITS") == (16 if hasattr(module, "BITS") else None)


@pytest.mark.parametrize("name", NAMES)
def test_the_given_case_is_timed_and_twelve_others_are_held_out(name: str) -> None:
    cases = problem(name).get_cases(seed=3)
    assert (cases[0]["timed"], cases[0]["held_out"]) == (True, False)
    assert not any(case["timed"] for case in cases[1:])
    assert sum(not case["held_out"] for case in cases) >= 4
    assert sum(case["held_out"] for case in cases) >= 12
    assert len({case["name"] for case in cases}) == len(cases)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_chooses_the_held_out_shapes(name: str) -> None:
    module = problem(name)
    assert module.get_cases(seed=1) == module.get_cases(seed=1)
    assert module.get_cases(seed=1) != module.get_cases(seed=2)


@pytest.mark.parametrize(("name", "width"), WIDTHS)
def test_the_framework_passes_every_case(name: str, width: dict[str, int]) -> None:
    for number, case in enumerate(problem(name).get_cases(seed=5)):
        module = problem(name, **width, **case["constants"])
        inputs = drawn(module, case["distribution"], number)
        model = module.Model(*module.get_init_inputs()).eval()
        got = run(model, [t.clone() for t in inputs])
        parameters = wide(list(model.state_dict().values()))
        want = run_wide(model, inputs)
        specs = [TensorSpec("out", tuple(y.shape), str(y.dtype).removeprefix("torch.")) for y in got]
        allowed = bounds(module.TOLERANCE, wide(inputs), parameters, want, specs)

        found = compare(got, want, allowed)
        assert found.evidence is None, (case["name"], found)
        for bound, y in zip(allowed, want, strict=True):
            finite = torch.isfinite(y.double())
            assert bool(torch.isfinite(bound.elementwise.expand_as(y)[finite]).all()), case["name"]
