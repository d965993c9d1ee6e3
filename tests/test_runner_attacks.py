"""What a hostile kernel gets: its own process ended, and a reason. The library is built past all lints."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fitness.card import TensorSpec
from fitness.judge.buffers import ArgumentSets
from fitness.judge.runner import KernelDied, Runner
from populations.verdict import Outcome

N = 1003  # not a multiple of 16: there is a redzone on either side
SPECS = [TensorSpec("x", (N,), "float32"), TensorSpec("w", (N,), "float32"), TensorSpec("y", (N,), "float32")]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("attacks") / "attacks.so"
    flags = ["-O1", "-w", "-fopenmp", "-nostartfiles", "-shared", "-fPIC", "-std=c++17"]
    subprocess.run(["g++", *flags, "-o", made, HERE / "runner_attacks.cpp"], check=True)
    return made


@pytest.fixture(scope="module")
def sets() -> Iterator[ArgumentSets]:
    with ArgumentSets(SPECS, 2, 1) as made:
        yield made


def attempt(library: Path, sets: ArgumentSets, misdeed: int, timeout_s: float = 5.0) -> KernelDied | None:
    """How the runner ended, or None where the block ended well; no process is left either way."""
    x, w = sets.inputs(0)
    x.normal_()
    w.normal_()
    x[0] = misdeed
    sets.poison(0, misdeed)
    death = None
    with Runner(library, sets, cores=2, sandboxed=True) as runner:
        pid = runner.pid
        try:
            runner.block(0, 1, timeout_s)
        except KernelDied as why:
            death = why
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
    return death


SECCOMP = "system call outside the allow-list"
DEADLY = [
    pytest.param(2, SECCOMP, id="fork"),
    pytest.param(3, "exited with status 0 before it replied", id="exit(0)"),
    pytest.param(4, "aborted", id="abort"),
    pytest.param(5, "segmentation fault", id="segfault"),
    pytest.param(6, "segmentation fault", id="write past the end of the output"),
    pytest.param(9, "segmentation fault", id="write to an input"),
    pytest.param(10, "segmentation fault", id="malloc of 100 GB"),
    pytest.param(11, "aborted", id="new of 100 GB"),
    pytest.param(12, SECCOMP, id="printf flood"),
    pytest.param(13, SECCOMP, id="raw system call"),
    pytest.param(14, SECCOMP, id="32-bit system call"),
    pytest.param(15, SECCOMP, id="x32 system call"),
    pytest.param(16, SECCOMP, id="libc's syscall, found by hand"),
    pytest.param(17, "wrote to the reply channel", id="libc's write, found by hand, on the reply channel"),
    pytest.param(18, SECCOMP, id="open of /proc/self/mem"),
    pytest.param(19, SECCOMP, id="a thread of its own"),
    pytest.param(21, SECCOMP, id="kill of its parent"),
    pytest.param(22, SECCOMP, id="nanosleep"),
    pytest.param(23, SECCOMP, id="mmap of executable memory"),
    pytest.param(24, SECCOMP, id="mprotect to executable"),
    pytest.param(25, "segmentation fault", id="mprotect of an input to writable"),
    pytest.param(26, SECCOMP, id="socket"),
    pytest.param(27, "segmentation fault", id="endless recursion"),
    pytest.param(28, "arithmetic fault", id="division by zero"),
    pytest.param(30, SECCOMP, id="abort of somebody else"),
    pytest.param(31, SECCOMP, id="punching a hole into the outputs"),
    pytest.param(33, SECCOMP, id="close of the reply channel"),
    pytest.param(34, SECCOMP, id="exec"),
    pytest.param(36, "segmentation fault", id="read far before the output"),
]


@pytest.mark.parametrize(("misdeed", "reason"), DEADLY)
def test_a_misdeed_ends_the_kernel_with_a_reason(
    library: Path, sets: ArgumentSets, misdeed: int, reason: str
) -> None:
    death = attempt(library, sets, misdeed)
    assert death is not None
    assert death.outcome is Outcome.CRASHED
    assert reason in death.reason


@pytest.mark.parametrize("misdeed", [1, 29], ids=["infinite loop", "waiting for the next command"])
def test_a_kernel_that_does_not_end_is_timed_out(library: Path, sets: ArgumentSets, misdeed: int) -> None:
    death = attempt(library, sets, misdeed, timeout_s=0.3)
    assert death is not None
    assert death.outcome is Outcome.TIMED_OUT
    assert death.reason == "no end within 0.3 s"


@pytest.mark.parametrize("misdeed", [7, 8], ids=["just after", "just before"])
def test_a_write_into_the_slack_beside_an_output_is_seen(
    library: Path, sets: ArgumentSets, misdeed: int
) -> None:
    assert attempt(library, sets, misdeed) is None
    assert sets.redzone_damage(0) == "y"


@pytest.mark.parametrize("harmless", [0, 35], ids=["honest", "reads a clock"])
def test_an_honest_kernel_leaves_redzones_and_no_poison(
    library: Path, sets: ArgumentSets, harmless: int
) -> None:
    assert attempt(library, sets, harmless) is None
    x, w = sets.inputs(0)
    assert torch.equal(sets.outputs(0)[0], x + w)
    assert sets.redzone_damage(0) is None
    assert sets.poison_left(0) is None


def test_a_page_of_its_own_over_an_input_does_not_change_the_input(library: Path, sets: ArgumentSets) -> None:
    assert attempt(library, sets, 32) is None
    assert sets.inputs(0)[0][1] != 99


def test_an_early_reply_stops_the_clock_and_the_kernel_with_it(library: Path, sets: ArgumentSets) -> None:
    # The forged reply ends the block; stopped as it is, the kernel gains nothing, and the next block tells.
    sets.inputs(0)[0][0] = 20
    with Runner(library, sets, cores=2, sandboxed=True) as runner:
        runner.block(0, 1, 5.0)
        sets.poison(0, 7)
        with pytest.raises(KernelDied) as death:
            runner.block(0, 1, 0.3)
        assert death.value.outcome is Outcome.TIMED_OUT
        assert sets.poison_left(0) == "y"


def test_after_its_death_every_block_says_the_same(library: Path, sets: ArgumentSets) -> None:
    sets.inputs(0)[0][0] = 3
    with Runner(library, sets, cores=2, sandboxed=True) as runner:
        reasons = set()
        for _ in range(2):
            with pytest.raises(KernelDied) as death:
                runner.block(0, 1, 5.0)
            reasons.add(death.value.reason)
    assert len(reasons) == 1


ORPHANING = """
import os, signal, sys
from pathlib import Path
from fitness.judge.buffers import ArgumentSets
from fitness.judge.runner import Runner
from tests.test_runner_attacks import SPECS
with ArgumentSets(SPECS, 2, 1) as sets:
    sets.inputs(0)[0][0] = 1
    runner = Runner(Path(sys.argv[1]), sets, cores=2, sandboxed=True)
    print(runner.pid, flush=True)
    if sys.argv[2] == "running":
        runner.block(0, 1, 60.0)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_runner_survives_a_judge_that_was_killed(library: Path) -> None:
    states = ("running", "stopped")
    commands = [[sys.executable, "-c", ORPHANING, str(library), state] for state in states]
    judges = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=HERE.parent) for command in commands]
    runners = []
    for judge in judges:
        with judge:
            assert judge.stdout is not None
            runners.append(int(judge.stdout.readline()))
            time.sleep(0.1)  # the running one is in its block by now; the stopped one kills itself
            judge.kill()
    end = time.monotonic() + 5
    while any(alive(pid) for pid in runners) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in runners)


def alive(pid: int) -> bool:
    """Whether a process still runs; what nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
