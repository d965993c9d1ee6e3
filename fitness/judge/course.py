"""Timing on a CPU: a course is one timed case under one policy, and contenders run it in turns.

A *block* is the timed unit: fresh inputs and poisoned outputs first, then the clock, then every argument set
of the block launched exactly once, then the clock, then every output checked. The seconds per call are those
of the block, less the fixed cost of a trusted kernel's empty block, over its sets. (A slope between short and
long blocks would need no such correction, but a kernel that does more than it must in short ones bends it.)

A warm block's sets fit half the last-level cache; a cold block rotates through three times that cache.

Baselines run in this process over the same buffers, refilled and timed alike. Blocks that the machine
disturbed (stolen time, threads that waited for a core) are taken again, a few times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import torch

from fitness.card import TensorSpec
from fitness.judge.buffers import ArgumentSets
from fitness.judge.runner import Runner, account
from fitness.judge.statistics import lower_quartile
from populations.verdict import Evidence

SETTLE_S = 0.001  # OpenMP workers of this process spin for 0.3 ms after a parallel loop; let them sleep
TRIES = 3  # of a disturbed block
BLOCKS = {"warm": 12, "cold": 2}  # of each contender in one round, fewer where they are long
ROUND_S = 0.02  # of launches of the baseline in one round
LONG_ENOUGH_S = {"warm": 150e-6, "cold": 1e-3}  # a shorter block is lost in its fixed cost
COLD_ROTATION = 3  # cold blocks walk through this many last-level caches
EMPTY_LIMIT_S = 2.0  # limit of an empty block
EMPTY_BLOCKS = 40  # that tell the fixed cost
MOST_SETS = 512  # each argument of each set is a mapping of its own
WAITING_S, WAITING_SHARE = 40e-6, 0.02  # some belongs to the start and the stop of a block
CPU_SLACK_S = 1e-3  # processor time is booked late, by up to a scheduler tick


class WrongOutput(Exception):
    """A timed launch whose outputs do not hold."""

    def __init__(self, reason: str, evidence: Evidence | None = None) -> None:
        super().__init__(reason)
        self.evidence = evidence


class Disturbance(Exception):
    """A kernel that used more processor time than its cores have: threads run on behind the clock."""


class Contender(Protocol):
    """Whatever runs blocks over a course's argument sets."""

    def block(self, count: int) -> tuple[float, bool]:
        """Launch sets 0 … count-1 once each; seconds, and whether the machine disturbed it."""

    def check(self, count: int) -> None:
        """Compare all outputs of the block just run.

        Raises:
            WrongOutput: one does not hold.
        """


class Course:
    """The argument sets of one timed case under one policy, and how they are renewed.

    Args:
        arguments: the entry's arguments.
        read_only: how many of them, from the first, are inputs or parameters.
        refill: writes fresh data, numbered by its first argument, into a set's read-only tensors.
        policy: "warm" or "cold".
        cache_bytes: size of the last-level cache.
        seconds: rough time of one call, to choose the length of a block.
    """

    def __init__(
        self,
        arguments: Sequence[TensorSpec],
        read_only: int,
        refill: Callable[[int, list[torch.Tensor]], None],
        *,
        policy: str,
        cache_bytes: int,
        seconds: float,
    ) -> None:
        self.policy = policy
        set_bytes = sum(spec.nbytes for spec in arguments)
        self.count = sets_per_block(set_bytes, policy, cache_bytes, seconds)
        self.blocks = max(1, min(BLOCKS[policy], int(ROUND_S / (seconds * self.count))))
        self.sets = ArgumentSets(arguments, read_only, self.count)
        self._refill = refill
        self._ordinal = 0

    def block(self, contender: Contender) -> float:
        """Seconds per call in one block; a disturbed one is taken again, a few times.

        Raises:
            WrongOutput, KernelDied, Disturbance: what the contender did.
        """
        seconds = 0.0
        for _ in range(TRIES):
            self.renew(self.count)
            stolen = _stolen_ticks()
            seconds, disturbed = contender.block(self.count)
            disturbed = disturbed or _stolen_ticks() > stolen
            contender.check(self.count)
            if not disturbed:
                break
        return seconds / self.count

    def renew(self, count: int) -> None:
        """Fresh inputs and poisoned outputs in the first ``count`` sets."""
        for index in range(count):
            self._ordinal += 1
            self._refill(self._ordinal, self.sets.inputs(index))
            self.sets.poison(index, self._ordinal)
        time.sleep(SETTLE_S)

    def close(self) -> None:
        """Give the buffers back."""
        self.sets.close()


def sets_per_block(set_bytes: int, policy: str, cache_bytes: int, seconds: float) -> int:
    """How many argument sets a block launches.

    Warm ones stay within half the last-level cache where they can.
    """
    enough = int(LONG_ENOUGH_S[policy] / seconds) + 1
    if policy == "cold":
        return min(max(-(-COLD_ROTATION * cache_bytes // set_bytes), enough), MOST_SETS)
    return max(1, min(enough, cache_bytes // (2 * set_bytes), MOST_SETS))


class KernelContender:
    """A kernel in its runner; only the clock of this process counts.

    Args:
        course: where it runs.
        library: the built kernel.
        check: raises WrongOutput where a set's outputs do not hold; None for a trusted probe.
        cores: cores it may use.
        sandboxed: whether its runner is confined.
        timeout_s: limit of one block.
        fixed_s: what a block costs beside its launches, told by a trusted kernel (``fixed_cost``).
    """

    def __init__(
        self,
        course: Course,
        library: Path,
        check: Callable[[ArgumentSets, int], None] | None,
        *,
        cores: int,
        sandboxed: bool,
        timeout_s: float,
        fixed_s: float,
    ) -> None:
        self._fixed_s = fixed_s
        self._sets = course.sets
        self._check = check
        self._cores = cores
        self._timeout_s = timeout_s
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
        return done.seconds - self._fixed_s, waited(done.seconds, done.waiting_seconds)

    def check(self, count: int) -> None:
        """See Contender."""
        for index in range(count if self._check else 0):
            damage = self._sets.redzone_damage(index)
            if damage:
                raise WrongOutput(f"wrote outside of {damage} in a timed launch")
            assert self._check is not None
            self._check(self._sets, index)

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


def fixed_cost(course: Course, library: Path, *, cores: int, sandboxed: bool) -> float:
    """Seconds a block costs beside its launches: the lower quartile of empty blocks of a trusted kernel."""
    with Runner(library, course.sets, cores=cores, sandboxed=sandboxed) as runner:
        seconds = []
        for _ in range(EMPTY_BLOCKS):
            time.sleep(SETTLE_S)
            seconds.append(runner.block(0, 0, EMPTY_LIMIT_S).seconds)
    return lower_quartile(seconds)


def race(course: Course, contenders: Sequence[Contender], rounds: int) -> list[list[float]]:
    """Seconds per call of each contender, one sample a round.

    Contenders take turns block by block, so that what slows the machine for a moment slows them alike; a
    sample is the lower quartile of a round's blocks, since disturbances only ever add.
    """
    samples: list[list[float]] = [[] for _ in contenders]
    order = list(range(len(contenders)))
    for _ in range(rounds):
        blocks: list[list[float]] = [[] for _ in contenders]
        for _ in range(course.blocks):
            for index in order:
                blocks[index].append(course.block(contenders[index]))
            order.reverse()
        for sample, seconds in zip(samples, blocks, strict=True):
            sample.append(lower_quartile(seconds))
    return samples


def waited(seconds: float, waiting_s: float | None) -> bool:
    """Whether threads of a block were kept from their cores for long enough to disturb its time.

    Args:
        seconds: of the block.
        waiting_s: ready to run without a core, all threads together; None: the kernel does not tell.
    """
    return waiting_s is not None and waiting_s > WAITING_S + WAITING_SHARE * seconds


def _stolen_ticks() -> int:
    """Time the hypervisor took from this machine, in clock ticks since boot; 0 where it is not told."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) if len(fields) > 8 else 0
