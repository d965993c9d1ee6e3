"""Kernels on a CPU: C++ libraries in confined runners, timed by the judge's own clock.

A warm block's sets fit half the last-level cache; a cold block rotates through three times that cache.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import torch

from fitness import machine
from fitness.card import Case, TensorSpec
from fitness.judge import baselines
from fitness.judge.awake import awake
from fitness.judge.buffers import ArgumentSets
from fitness.judge.contenders import BaselineContender, KernelContender
from fitness.judge.course import Course, race
from fitness.judge.floor import FMA_FLOPS, PROBES, floor, probe_arguments
from fitness.judge.hooks import ALWAYS
from fitness.judge.loaded import LoadedCase
from fitness.judge.rig import Check, Contender, Disturbance, KernelDied, Sets
from fitness.judge.runner import Runner
from fitness.judge.statistics import CLAIM_ROUNDS, lower_quartile
from fitness.target import DeviceError
from populations.calibration import Floor
from populations.verdict import POLICIES

SETTLE_S = 0.001  # OpenMP workers of this process spin for 0.3 ms after a parallel loop; let them sleep
BLOCKS = {"warm": 12, "cold": 2}  # of each contender in one round, fewer where they are long
ROUND_S = 0.02  # of launches of the baseline in one round
LONG_ENOUGH_S = {"warm": 150e-6, "cold": 1e-3}  # a shorter block is lost in its fixed cost
COLD_ROTATION = 3  # cold blocks walk through this many last-level caches
EMPTY_LIMIT_S, PROBE_LIMIT_S = 2.0, 10.0  # of an empty block, and of a probe's
EMPTY_BLOCKS = 40  # that tell the fixed cost
MOST_SETS = 512  # each argument of each set is a mapping of its own


class CpuRig:
    """This machine's cores (see fitness.judge.rig.Rig).

    Args:
        cores: that a kernel may use.
        sandboxed: whether runners are confined.
        build_probe: library of a trusted kernel of fitness.judge.floor, by name.
    """

    policies: tuple[str, ...] = POLICIES
    rounds = 15
    numerics = "device"
    fuses = False
    repeats = True
    lost = False
    memory_bytes = None

    def __init__(self, cores: int, *, sandboxed: bool, build_probe: Callable[[str], Path]) -> None:
        self._cores = cores
        self.cache_bytes = machine.cache_bytes()
        self._sandboxed = sandboxed
        self._build_probe = build_probe
        self.isolation = "process" if sandboxed else "weak"

    @property
    def facts(self) -> dict[str, str]:
        """See Rig."""
        return {**machine.facts(), "torch": torch.__version__}

    def telemetry(self) -> dict[str, str]:
        """See Rig."""
        return {}

    def baselines(self, loaded: LoadedCase) -> tuple[str, ...]:  # noqa: ARG002
        """See Rig."""
        return ALWAYS

    def sets(self, arguments: Sequence[TensorSpec], read_only: int, count: int) -> ArgumentSets:
        """See Rig."""
        return ArgumentSets(arguments, read_only, count)

    def launcher(self, kernel: Path, case: Case, sets: Sets) -> Runner:  # noqa: ARG002
        """See Rig."""
        assert isinstance(sets, ArgumentSets)
        return Runner(kernel, sets, cores=self._cores, sandboxed=self._sandboxed)

    def course(self, loaded: LoadedCase, policy: str) -> Course:
        """See Rig."""
        case, inputs = loaded.case, len(loaded.case.inputs)
        refill = loaded.refiller(secrets.token_hex(16))
        course = self._course(
            case.arguments,
            inputs + len(case.parameters),
            lambda ordinal, tensors: refill.fill(ordinal, tensors[:inputs], tensors[inputs:]),
            policy,
            baselines.rough_seconds(loaded),
        )
        course.fixed_s = self._fixed_cost(course)
        return course

    def baseline(self, name: str, loaded: LoadedCase, course: Course) -> Contender:
        """See Rig."""
        return BaselineContender(baselines.warmed_up(name, loaded, course))

    def contender(
        self,
        kernel: Path,
        case: Case,  # noqa: ARG002
        course: Course,
        check: Check | None,
        limit_s: float,
    ) -> Contender:
        """See Rig."""
        return KernelContender(
            course, kernel, check, cores=self._cores, sandboxed=self._sandboxed, timeout_s=limit_s
        )

    def floor(self, case: Case, course: Course, seconds: float) -> Floor:
        """See Rig: what four probes of memory and one of arithmetic reach under the course's policy."""
        set_bytes = sum(spec.nbytes for spec in case.arguments)
        times = {name: self._probe(name, case, set_bytes, course.policy, seconds) for name in PROBES}
        peak = FMA_FLOPS * self._cores / self._probe("fma", case, 1 << 10, course.policy, seconds)
        return floor(case, course.policy, times, peak)

    def least_block_s(self, course: Course) -> float:
        """See Rig. The fixed cost is told again: the machine may have been busy when it was measured."""
        course.fixed_s = min(course.fixed_s, self._fixed_cost(course))
        return course.fixed_s / 4

    def quiet(self) -> AbstractContextManager[object]:
        """See Rig."""
        return awake(self._cores)

    def _course(
        self,
        arguments: Sequence[TensorSpec],
        read_only: int,
        refill: Callable[[int, list[torch.Tensor]], None],
        policy: str,
        seconds: float,
    ) -> Course:
        set_bytes = sum(spec.nbytes for spec in arguments)
        count = sets_per_block(set_bytes, policy, self.cache_bytes, seconds)
        blocks = max(1, min(BLOCKS[policy], int(ROUND_S / (seconds * count))))
        sets = self.sets(arguments, read_only, count)
        return Course(sets, refill, policy=policy, blocks=blocks, settle_s=SETTLE_S)

    def _fixed_cost(self, course: Course) -> float:
        return fixed_cost(course, self._build_probe("copy"), cores=self._cores, sandboxed=self._sandboxed)

    def _probe(self, name: str, case: Case, nbytes: int, policy: str, seconds: float) -> float:
        def measured() -> float:
            contender = self.contender(self._build_probe(name), case, course, None, PROBE_LIMIT_S)
            try:
                return min(race(course, [contender], CLAIM_ROUNDS)[0])  # a floor errs on the fast side
            finally:
                contender.close()

        course = self._course(probe_arguments(name, nbytes), 1, _uniform, policy, seconds)
        try:
            course.fixed_s = self._fixed_cost(course)
            return trusted(f"the {name} probe", measured)
        finally:
            course.close()


def sets_per_block(set_bytes: int, policy: str, cache_bytes: int, seconds: float) -> int:
    """How many argument sets a block launches.

    Warm ones stay within half the last-level cache where they can.
    """
    enough = int(LONG_ENOUGH_S[policy] / seconds) + 1
    if policy == "cold":
        return min(max(-(-COLD_ROTATION * cache_bytes // set_bytes), enough), MOST_SETS)
    return max(1, min(enough, cache_bytes // (2 * set_bytes), MOST_SETS))


def fixed_cost(course: Course, library: Path, *, cores: int, sandboxed: bool) -> float:
    """Seconds a block costs beside its launches: the lower quartile of empty blocks of a trusted kernel.

    Raises:
        DeviceError: the machine does not even run those.
    """

    def measured() -> float:
        assert isinstance(course.sets, ArgumentSets)
        with Runner(library, course.sets, cores=cores, sandboxed=sandboxed) as runner:
            seconds = []
            for _ in range(EMPTY_BLOCKS):
                time.sleep(SETTLE_S)
                seconds.append(runner.block(0, 0, EMPTY_LIMIT_S).seconds)
        return lower_quartile(seconds)

    return trusted("an empty block", measured)


def trusted(what: str, measured: Callable[[], float]) -> float:
    """A measurement that only runs kernels of ours; once more where one fails.

    Raises:
        DeviceError: it failed again, and no kernel under test is to blame.
    """
    with suppress(KernelDied, Disturbance):
        return measured()
    try:
        return measured()
    except (KernelDied, Disturbance) as why:
        raise DeviceError(
            f"this machine does not let {what} of the judge's own run: {why}; "
            "give it time and memory (is it busy?), then start again"
        ) from why


def _uniform(_ordinal: int, tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        tensor.uniform_(0.5, 1.0)
