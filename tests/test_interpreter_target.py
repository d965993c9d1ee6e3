"""Triton kernels on a machine without a GPU, end to end: source, plan, interpreter, verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fitness.lowered import LoweredTarget
from fitness.target import DeviceError
from fitness.verify import judge_once
from populations.kernel import Kernel
from populations.verdict import Outcome, Verdict

pytest.importorskip("triton")
pytestmark = pytest.mark.judge

PROBLEM = '''
"""Scale each row by its own largest magnitude."""
import torch
from torch import nn

ROWS, COLS = 48, 200


class Model(nn.Module):
    def forward(self, x):
        return x / x.abs().amax(dim=-1, keepdim=True)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
'''

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
    scaled = v / tl.max(tl.abs(v), 0)
    tl.store(y + row * cols + at, scaled, mask=at < cols)


def kernel_function(x):
    y = torch.empty_like(x)
    scale_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("problem") / "scaled.py"
    path.write_text(PROBLEM)
    return path


@pytest.fixture(scope="module")
def target(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoweredTarget]:
    opened = LoweredTarget(str(problem), folder=tmp_path_factory.mktemp("target"))
    yield opened
    opened.close()


def judged(target: LoweredTarget, old: str = "", new: str = "") -> Verdict:
    assert old in KERNEL
    return judge_once(target, Kernel(KERNEL.replace(old, new) if old else KERNEL, "triton"))


def test_a_right_kernel_is_correct_general_and_not_timed(target: LoweredTarget) -> None:
    verdict = judged(target)
    assert (verdict.status, verdict.reason) == (Outcome.CORRECT, "correct, not timed")
    assert (verdict.numerics, verdict.timed, verdict.general) == ("interpreter", False, True)
    assert verdict.isolation == "process"
    assert len(verdict.cases) > 3
    (function,) = verdict.profile
    assert (function.name, function.warps) == ("scale_rows", 4)
    assert function.mix is not None and function.mix["global_load"] > 0


def test_nothing_is_calibrated(target: LoweredTarget) -> None:
    assert target.calibrate().baselines == ()


@pytest.mark.parametrize(
    ("old", "new", "status", "says"),
    [
        ("tl.max(", "tl.sum(", Outcome.INCORRECT, "wrong result on case given"),
        (", mask=at < cols)\n\n", ", mask=at < cols - 1)\n\n", Outcome.INCORRECT, "not written everywhere"),
        (
            "y + row * cols + at, scaled, mask=at < cols",
            "y + row * cols + at, scaled",
            Outcome.INCORRECT,
            "beside",
        ),
        ("x, y, x.shape[1]", "x, x, x.shape[1]", Outcome.CRASHED, "wrote to an input"),
        ("    y = torch.empty_like(x)", "    y = torch.softmax(x, 1)", Outcome.REJECTED, "line 17"),
        ("tl.abs(v), 0)", "tl.abs(v), 5)", Outcome.UNCOMPILABLE, "invalid axis 5"),
        ("v / tl", "nothing / tl", Outcome.REJECTED, "line 12"),
    ],
)
def test_a_wrong_kernel_ends_where_it_should(
    target: LoweredTarget, old: str, new: str, status: Outcome, says: str
) -> None:
    verdict = judged(target, old, new)
    assert verdict.status is status, verdict.reason
    assert says in verdict.reason


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("BLOCK=triton", "launch_cooperative_grid=True, BLOCK=triton", "a cooperative grid"),
        ("[(x.shape[0],)]", "[(x.shape[0], 300)]", "14400 programs"),
        (
            "    scaled = v",
            "    v = tl.inline_asm_elementwise("
            "'prmt.b32 $0, $1, $1, 0x3210;', '=r,r', [v], tl.float32, True, 1)\n"
            "    scaled = v",
            "prmt.b32 is not interpreted",
        ),
    ],
)
def test_what_cannot_be_checked_is_lowered_and_the_reason_says_what(
    target: LoweredTarget, old: str, new: str, says: str
) -> None:
    verdict = judged(target, old, new)
    assert (verdict.status, verdict.numerics) == (Outcome.LOWERED, "none"), verdict.reason
    assert says in verdict.reason


def test_an_endless_loop_costs_one_kernel(target: LoweredTarget) -> None:
    loop = "    while tl.load(x) == tl.load(x):\n        at += 0\n    scaled = v"
    assert judged(target, "    scaled = v", loop).status is Outcome.TIMED_OUT
    assert judged(target).status is Outcome.CORRECT


def test_an_unknown_architecture_is_named(problem: Path, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="sm_12345"):
        LoweredTarget(str(problem), folder=tmp_path, arch="sm_12345")


def test_verify_takes_a_triton_file_and_ends_well_when_it_is_right(problem: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(KERNEL)
    command = [sys.executable, "-m", "evo", "verify", str(file), str(problem), "--target", "cpu", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["status"], told["language"], told["timed"]) == ("correct", "triton", False)
    assert (told["numerics"], told["speedup"]) == ("interpreter", None)
