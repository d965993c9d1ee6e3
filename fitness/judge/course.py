"""Timing: a course is one timed case under one policy, and contenders run it in turns.

A *block* is the timed unit: fresh inputs and poisoned outputs first, then the clock, then every argument set
of the block launched exactly once, then the clock, then every output checked. The seconds per call are those
of the block, less what an empty block costs, over its sets. (A slope between short and long blocks would need
no such correction, but a kernel that does more than it must in short ones bends it.)

Baselines run over the same buffers, refilled and timed alike. Blocks that the machine disturbed are taken
again, a few times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from fitness.judge.rig import Contender, Sets
from fitness.judge.statistics import lower_quartile, median

TRIES = 3  # of a disturbed block, and of a round in which the gauge strayed
STRAY = 0.03  # of the gauge's median time
Refill = Callable[[int, list[Tensor]], None]


class Course:
    """The argument sets of one timed case under one policy, and how they are renewed.

    Args:
        sets: all of them make one block.
        refill: writes fresh data, numbered by its first argument, into a set's read-only tensors.
        policy: "warm" or "cold".
        blocks: of each contender in one round.
        settle_s: to wait before a block, until other threads of this process sleep.
        gauge: work that is always the same, once a round; where its time strays, the round is taken again.

    Attributes:
        fixed_s: what a block costs beside its launches.
        clocked_s: seconds of all blocks so far, by the clock that counts.
        blocks_taken: how many those were, without those that were taken again.
        blocks_disturbed: those among them that stayed disturbed, however often they were taken again.
    """

    def __init__(
        self,
        sets: Sets,
        refill: Refill,
        *,
        policy: str,
        blocks: int,
        settle_s: float = 0.0,
        gauge: Contender | None = None,
    ) -> None:
        self.sets = sets
        self.count = sets.count
        self.policy = policy
        self.blocks = blocks
        self.fixed_s = 0.0
        self.clocked_s = 0.0
        self.blocks_taken = self.blocks_disturbed = 0
        self._refill = refill
        self._settle_s = settle_s
        self._gauge = gauge
        self._gauged: list[float] = []
        self._ordinal = 0

    def block(self, contender: Contender) -> float:
        """Seconds per call in one block; a disturbed one is taken again, a few times.

        Raises:
            WrongOutput, KernelDied, Disturbance: what the contender did.
        """
        seconds, disturbed = 0.0, False
        for _ in range(TRIES):
            self.renew(self.count)
            stolen = _stolen_ticks()
            seconds, disturbed = contender.block(self.count)
            self.clocked_s += seconds
            disturbed = disturbed or _stolen_ticks() > stolen
            contender.check(self.count)
            if not disturbed:
                break
        self.blocks_taken += 1
        self.blocks_disturbed += disturbed
        return seconds / self.count

    def renew(self, count: int) -> None:
        """Fresh inputs and poisoned outputs in the first ``count`` sets."""
        for index in range(count):
            self._ordinal += 1
            self._refill(self._ordinal, self.sets.inputs(index))
            self.sets.poison(index, self._ordinal)
        time.sleep(self._settle_s)

    def strayed(self) -> bool:
        """Whether the machine is not what it usually is, as the gauge tells; False where there is none."""
        if self._gauge is None:
            return False
        seconds, _ = self._gauge.block(1)
        self._gauged.append(seconds)
        return abs(seconds / median(self._gauged) - 1) > STRAY

    def close(self) -> None:
        """Give the buffers back."""
        self.sets.close()


def race(course: Course, contenders: Sequence[Contender], rounds: int) -> list[list[float]]:
    """Seconds per call of each contender, one sample a round.

    Contenders take turns block by block, so that what slows the machine for a moment slows them alike; a
    sample is the lower quartile of a round's blocks, since disturbances only ever add.
    """
    samples: list[list[float]] = [[] for _ in contenders]
    order = list(range(len(contenders)))
    for _ in range(rounds):
        for _ in range(TRIES):
            blocks: list[list[float]] = [[] for _ in contenders]
            for _ in range(course.blocks):
                for index in order:
                    blocks[index].append(course.block(contenders[index]))
                order.reverse()
            if not course.strayed():
                break
        for sample, seconds in zip(samples, blocks, strict=True):
            sample.append(lower_quartile(seconds))
    return samples


def _stolen_ticks() -> int:
    """Time the hypervisor took from this machine, in clock ticks since boot; 0 where it is not told."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) if len(fields) > 8 else 0
