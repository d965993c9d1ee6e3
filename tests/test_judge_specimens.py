"""The judge leaves in files what a plan does on a case, and tells whether another's outputs hold there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from fitness.lowered import LoweredTarget
from fitness.target import Admission, Built
from populations.kernel import Kernel

pytest.importorskip("triton")
pytestmark = [pytest.mark.judge, pytest.mark.timeout(600)]

PROBLEM = Path(__file__).parent / "problems" / "hard_tanh.py"
CLIP = """import torch
import triton
import triton.language as tl


@triton.jit
def clip(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < count)
    tl.store(y + at, tl.minimum(tl.maximum(v, -1.0), 1.0), mask=at < count)


def kernel_function(x):
    y = torch.empty_like(x)
    clip[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoweredTarget]:
    opened = LoweredTarget(str(PROBLEM), folder=tmp_path_factory.mktemp("judge"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def sample(target: LoweredTarget) -> dict[str, Any]:
    """Of the smallest case that the interpreter can run."""
    return {"do": "sample", "kernel": str(built(target)), "case": smallest(target)}


def built(target: LoweredTarget) -> Path:
    admission = target.admit(Kernel(CLIP, "triton"))
    assert isinstance(admission, Admission)
    made = target._lowered(admission.kernel, target.card.cases)
    assert isinstance(made, Built), made
    return made.artifact


def smallest(target: LoweredTarget) -> str:
    return min(target.card.cases, key=lambda case: sum(spec.nbytes for spec in case.arguments)).name


def test_inputs_and_outputs_lie_in_files_and_two_runs_agree(
    target: LoweredTarget, sample: dict[str, Any], tmp_path: Path
) -> None:
    told = target._ask({**sample, "inputs": str(tmp_path), "outputs": str(tmp_path)}, 60)
    assert told == {"inputs": ["compared-in-0"], "outputs": ["compared-out-0"], "alike": True}
    given, made = (numpy.fromfile(tmp_path / told[name][0], numpy.float32) for name in ("inputs", "outputs"))
    assert given.size
    assert (numpy.clip(given, -1, 1) == made).all()


def test_outputs_in_files_are_held_against_the_reference(
    target: LoweredTarget, sample: dict[str, Any], tmp_path: Path
) -> None:
    target._ask({**sample, "inputs": str(tmp_path), "outputs": str(tmp_path)}, 60)
    hold = {"do": "hold", "folder": str(tmp_path)}
    assert target._ask(hold, 60) == {"reason": None}
    file = tmp_path / "compared-out-0"
    values = numpy.fromfile(file, numpy.float32)
    (values + 0.5).tofile(file)
    assert "wrong result on case" in target._ask(hold, 60)["reason"]
    values[:-1].tofile(file)
    assert "of another size" in target._ask(hold, 60)["reason"]
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert "of another size" in target._ask(hold, 60)["reason"]


def test_for_a_timed_case_inputs_alone_are_left(
    target: LoweredTarget, sample: dict[str, Any], tmp_path: Path
) -> None:
    told = target._ask({**sample, "inputs": str(tmp_path), "outputs": None}, 60)
    assert told == {"inputs": ["timed-in-0"], "outputs": [], "alike": None}
    assert [path.name for path in tmp_path.iterdir()] == ["timed-in-0"]
