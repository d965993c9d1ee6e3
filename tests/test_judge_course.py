"""Blocks: how long they are, and that a launch in one is a checked launch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fitness import cpp
from fitness.card import TensorSpec
from fitness.judge.bench import busy
from fitness.judge.buffers import ArgumentSets
from fitness.judge.contenders import BaselineContender, KernelContender, waited
from fitness.judge.course import Course, race
from fitness.judge.cpu_rig import fixed_cost, sets_per_block, trusted
from fitness.judge.rig import Disturbance, WrongOutput
from fitness.target import Admission, Built, DeviceError
from populations.kernel import Kernel

CACHE = 32 << 20
SHAPE = (64, 1024)
SPECS = (TensorSpec("x", SHAPE, "float32"), TensorSpec("out", SHAPE, "float32"))
ENTRY = 'extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes)'
LOOP = "for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = 2 * x[i];"
DOUBLE = f"#include <cstdint>\n{ENTRY} {{ {LOOP} }}\n"
ONCE = f"""#include <cstdint>
static int calls = 0;
{ENTRY} {{ if (calls++ == 0) {LOOP} }}
"""


@pytest.fixture
def course() -> Iterator[Course]:
    generator = torch.Generator().manual_seed(1)

    def refill(_ordinal: int, tensors: list[torch.Tensor]) -> None:
        tensors[0].normal_(generator=generator)

    made = Course(ArgumentSets(SPECS, 1, 3), refill, policy="warm", blocks=2)
    yield made
    made.close()


def library(source: str, folder: Path) -> Path:
    built = cpp.build(Admission(Kernel(source, "cpp"), "test"), folder, sandboxed=True)
    assert isinstance(built, Built), built
    return built.artifact


def contender(course: Course, source: str, folder: Path) -> KernelContender:
    def check(_sets: object, count: int) -> None:
        for index in range(count):
            if not torch.equal(course.sets.outputs(index)[0], 2 * course.sets.inputs(index)[0]):
                raise WrongOutput("not twice its input")

    return KernelContender(course, library(source, folder), check, cores=2, sandboxed=True, timeout_s=5.0)


def test_a_warm_block_lasts_long_enough_and_fits_half_the_cache() -> None:
    assert sets_per_block(8 << 20, "warm", CACHE, 300e-6) == 1
    assert sets_per_block(1 << 20, "warm", CACHE, 26e-6) == 6
    assert sets_per_block(4 << 20, "warm", CACHE, 1e-6) == 4


def test_a_cold_block_rotates_through_three_caches() -> None:
    assert sets_per_block(8 << 20, "cold", CACHE, 300e-6) == 12
    assert sets_per_block(1 << 30, "cold", CACHE, 0.1) == 1


def test_an_honest_kernel_and_a_baseline_are_timed_in_turns(course: Course, tmp_path: Path) -> None:
    kernel = contender(course, DOUBLE, tmp_path)
    baseline = BaselineContender([lambda k=k: course.sets.inputs(k)[0] * 2 for k in range(course.count)])  # type: ignore[misc]
    samples = race(course, [baseline, kernel], rounds=3)
    kernel.close()
    assert [len(each) for each in samples] == [3, 3]
    assert all(seconds > 0 for each in samples for seconds in each)


class Disturbed:
    """A contender that somebody always takes a core from."""

    def block(self, count: int) -> tuple[float, bool]:
        return 1e-3 * count, True

    def check(self, count: int) -> None:
        pass

    def close(self) -> None:
        pass


def test_what_stays_disturbed_is_counted_and_told(course: Course) -> None:
    race(course, [Disturbed()], rounds=2)
    assert (course.blocks_taken, course.blocks_disturbed) == (4, 4)
    (note,) = busy(course.blocks_taken, course.blocks_disturbed)
    assert "the machine was busy: 100% of the timed blocks" in note
    assert busy(4, 2) == busy(0, 0) == []


def test_a_kernel_that_works_in_its_first_launch_only_is_caught_in_a_timed_block(
    course: Course, tmp_path: Path
) -> None:
    kernel = contender(course, ONCE, tmp_path)
    try:
        with pytest.raises(WrongOutput, match="not twice"):
            course.block(kernel)
    finally:
        kernel.close()


class Gauge:
    """Work that takes the given times, one after the other."""

    def __init__(self, *times: float) -> None:
        self._times = iter(times)

    def block(self, _count: int) -> tuple[float, bool]:
        return next(self._times), False

    def check(self, count: int) -> None: ...

    def close(self) -> None: ...


def test_a_round_in_which_the_gauge_strays_is_taken_again() -> None:
    sets = ArgumentSets(SPECS, 1, 1)
    gauge = Gauge(1.0, 1.01, 1.2, 1.0, 0.99)
    course = Course(sets, lambda _ordinal, _tensors: None, policy="cold", blocks=1, gauge=gauge)
    kernel = Gauge(1.0, 2.0, 3.0, 4.0, 5.0)
    try:
        assert race(course, [kernel], rounds=4) == [[1.0, 2.0, 4.0, 5.0]]
    finally:
        course.close()


def test_inputs_of_two_blocks_differ(course: Course) -> None:
    course.renew(1)
    before = course.sets.inputs(0)[0].clone()
    course.renew(1)
    assert not torch.equal(before, course.sets.inputs(0)[0])


def test_more_processor_time_than_the_cores_have_is_a_disturbance(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fitness.judge.contenders.CPU_SLACK_S", 0.0)
    kernel = contender(course, DOUBLE, tmp_path)
    kernel._cores = 0  # as if its threads were more than it was given cores
    try:
        with pytest.raises(Disturbance, match="processor time"):
            for _ in range(200):
                kernel.block(course.count)
    finally:
        kernel.close()


def test_a_block_whose_threads_waited_for_a_core_is_disturbed() -> None:
    assert waited(300e-6, 200e-6)
    assert not waited(300e-6, 10e-6)
    assert not waited(300e-6, None)


def test_a_trusted_kernel_that_does_not_run_is_the_machine_s_fault(course: Course, tmp_path: Path) -> None:
    (tmp_path / "empty.so").write_bytes(b"")
    with pytest.raises(DeviceError, match=r"^this machine does not let an empty block[^\n]*$"):
        fixed_cost(course, tmp_path / "empty.so", cores=1, sandboxed=True)


def test_a_trusted_measurement_that_fails_once_is_taken_again() -> None:
    failing = [Disturbance("used more than it was given")]

    def measured() -> float:
        if failing:
            raise failing.pop()
        return 1.0

    assert trusted("the copy probe", measured) == 1.0
