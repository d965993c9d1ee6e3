"""The CPU target keeps the promises of its contract, on the real judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fitness.cpu import CpuTarget
from fitness.target import Admission, Built, DeviceError, Target
from fitness.testing import TargetContract
from populations.kernel import Kernel
from populations.seeds import seeds
from populations.verdict import Outcome


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    opened = CpuTarget("rope", folder=tmp_path_factory.mktemp("rope"))
    yield opened
    opened.close()


@pytest.fixture
def good() -> Kernel:
    seed = seeds("rope", "cpp")[1]
    return Kernel(seed.source, seed.language)


@pytest.mark.judge
class TestCpuTarget(TargetContract):
    pass


@pytest.mark.judge
def test_a_promoted_seed_is_measured_with_all_samples_kept(target: Target, good: Kernel) -> None:
    admission = target.admit(good)
    assert isinstance(admission, Admission)
    built = target.build(admission)
    assert isinstance(built, Built)
    verdict = target.promote(built)
    assert verdict.status is Outcome.MEASURED
    (timed,) = [case for case in verdict.cases if case.timings]
    assert [timing.policy for timing in timed.timings] == ["warm", "cold"]
    assert all(len(timing.samples) == len(timing.baseline_samples) == 15 for timing in timed.timings)
    assert sum(case.held_out for case in verdict.cases) >= 12


@pytest.mark.judge
def test_a_judge_that_was_killed_is_the_machines_fault_not_the_kernels(tmp_path: Path) -> None:
    opened = CpuTarget("rope", folder=tmp_path)
    opened._judge._process.kill()
    with pytest.raises(DeviceError, match="the judge ended"):
        opened.calibrate()
    opened.close()
