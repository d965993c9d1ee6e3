"""Who races on a CPU: a kernel in its runner, a baseline in this process, each told when it was disturbed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from fitness.judge.buffers import ArgumentSets
from fitness.judge.course import Course
from fitness.judge.rig import Check, Disturbance
from fitness.judge.runner import Runner, account

WAITING_S, WAITING_SHARE = 40e-6, 0.02  # some belongs to the start and the stop of a block
CPU_SLACK_S = 1e-3  # processor time is booked late, by up to a scheduler tick


class KernelContender:
    """A kernel in its runner; only the clock of this process counts.

    Args:
        course: where it runs.
        library: the built kernel.
        check: raises WrongOutput where a set's outputs do not hold; None for a trusted probe.
        cores: cores it may use.
        sandboxed: whether its runner is confined.
        timeout_s: limit of one block.
    """

    def __init__(
        self,
        course: Course,
        library: Path,
        check: Check | None,
        *,
        cores: int,
        sandboxed: bool,
        timeout_s: float,
    ) -> None:
        self._course = course
        self._check = check
        self._cores = cores
        self._timeout_s = timeout_s
        assert isinstance(course.sets, ArgumentSets)
        self._runner = Runner(library, course.sets, cores=cores, sandboxed=sandboxed)

    def block(self, count: int) -> tuple[float, bool]:
        """See Contender.

        Raises:
            Disturbance: more processor time than wall time times cores.
        """
        done = self._runner.block(0, count, self._timeout_s)
        if done.cpu_seconds > done.seconds * self._cores * 1.05 + CPU_SLACK_S:
            spent, wall = done.cpu_seconds * 1e3, done.seconds * 1e3
            raise Disturbance(
                f"used {spent:.2f} ms of processor time in {wall:.2f} ms on {self._cores} cores"
            )
        return done.seconds - self._course.fixed_s, waited(done.seconds, done.waiting_seconds)

    def check(self, count: int) -> None:
        """See Contender."""
        if self._check is not None:
            self._check(self._course.sets, count)

    def close(self) -> None:
        """End the runner."""
        self._runner.close()


class BaselineContender:
    """A framework call in this process; a block's outputs are kept, so that its allocator rotates too."""

    def __init__(self, calls: Sequence[Callable[[], object]]) -> None:
        self._calls = calls
        self._outputs: list[object] = []
        self._wakening = torch.zeros(1 << 16)  # enough elements for a parallel loop

    def block(self, count: int) -> tuple[float, bool]:
        """See Contender."""
        self._outputs.clear()
        calls, keep = self._calls[:count], self._outputs.append
        before = account(os.getpid()).waiting
        self._wakening.zero_()  # a runner's workers are stopped awake; so these begin awake as well
        start = time.perf_counter()
        for call in calls:
            keep(call())
        seconds = time.perf_counter() - start
        after = account(os.getpid()).waiting
        return seconds, waited(seconds, None if before is None or after is None else after - before)

    def check(self, count: int) -> None:
        """Nothing to do: a baseline passed the gate before and is trusted code."""

    def close(self) -> None:
        """Let the kept outputs go."""
        self._outputs.clear()


def waited(seconds: float, waiting_s: float | None) -> bool:
    """Whether threads of a block were kept from their cores for long enough to disturb its time.

    Args:
        seconds: of the block.
        waiting_s: ready to run without a core, all threads together; None: the kernel does not tell.
    """
    return waiting_s is not None and waiting_s > WAITING_S + WAITING_SHARE * seconds
