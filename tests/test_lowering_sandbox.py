"""Host code meets the sandbox where the lints do not see it: ``warnings.sys`` leads to every module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import lower_idioms
import pytest
from test_lowering_rules import CASE, HONEST

from fitness.lowering import Lowered, Lowering
from populations.kernel import Kernel
from populations.verdict import Verdict

SYSTEM = "import warnings\nsystem = warnings.sys.modules['os']\n"
SECRET = "KERNEL_EVO_TEST_SECRET"


@pytest.fixture(scope="module")
def lowering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lowering]:
    os.environ[SECRET] = "shh"
    made = Lowering(tmp_path_factory.mktemp("lowering"))
    yield made
    made.close()
    del os.environ[SECRET]


def said(lowering: Lowering, line: str) -> str:
    source = SYSTEM + HONEST.replace("pass", line)
    verdict = lowering.lower(Kernel(source, "triton"), [CASE])
    assert isinstance(verdict, Verdict), "the host code did what it should not"
    return f"{verdict.status}: {verdict.reason}"


@pytest.mark.parametrize(
    "line",
    [
        "system.listdir(system.path.expanduser('~root'))",
        "system.listdir('/proc')",
        "system.stat('/etc/passwd') and system.open('/etc/passwd', system.O_RDONLY)",
        "system.mkdir('/tmp/kernel-evo-was-here')",
        "system.fork()",
        "system.execv('/bin/sh', ['sh'])",
        "system.mkdir('../beside')",
        "system.open('/proc/1/environ', 0)",
    ],
)
def test_host_code_reaches_nothing_outside_its_folder(lowering: Lowering, line: str) -> None:
    answer = said(lowering, line)
    assert "Permission" in answer or "not permitted" in answer
    assert not Path("/tmp/kernel-evo-was-here").exists()


def test_host_code_has_no_network(lowering: Lowering) -> None:
    answer = said(lowering, "warnings.sys.modules['socket'].socket()")
    assert "PermissionError" in answer


def test_host_code_finds_no_secret_in_its_environment(lowering: Lowering) -> None:
    answer = said(lowering, "raise ValueError(','.join(k for k in system.environ if 'SECRET' in k) + 'none')")
    assert answer == "rejected: line 13: the host code raised ValueError: none"


@pytest.mark.parametrize(
    "line", ["system.symlink('/etc/passwd', 'answer.json')", "system.mkfifo('answer.json')"]
)
def test_an_answer_that_is_not_a_plain_file_is_not_read(lowering: Lowering, line: str) -> None:
    assert (
        said(lowering, f"{line}; getattr(system, '_' + 'exit')(0)")
        == "rejected: the host code ended the process"
    )


def test_a_forged_answer_must_be_a_plan_of_the_cases_asked_for(lowering: Lowering) -> None:
    text = '{"kernels": [], "cases": [], "choices": {}, "tuned": {}}'
    forge = f"system.write(system.open('answer.json', system.O_WRONLY | system.O_CREAT), b'{text}')"
    answer = said(lowering, f"{forge}; getattr(system, '_' + 'exit')(0)")
    assert answer == "rejected: the host function gives a plan of other cases"


def test_a_candidate_that_crashes_python_costs_one_candidate(lowering: Lowering) -> None:
    assert said(lowering, "warnings.sys.modules['ctypes'].string_at(0)").startswith("crashed: tracing")
    kernel, cases, entry = lower_idioms.read(lower_idioms.FOLDER / "tuple_grid.py")
    assert isinstance(lowering.lower(kernel, cases, entry), Lowered)
