"""One timed case under one policy: its course, its baselines, its noise and floor, and timings on it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import torch

from fitness.judge import baselines
from fitness.judge.baselines import Standing
from fitness.judge.bounds import Bound, bounds
from fitness.judge.buffers import ArgumentSets
from fitness.judge.compare import compare
from fitness.judge.course import Course, KernelContender, WrongOutput, fixed_cost, race
from fitness.judge.floor import FMA_FLOPS, PROBES, floor, probe_arguments
from fitness.judge.gate import describe, judged, widened
from fitness.judge.problem import Draw, LoadedCase
from fitness.judge.statistics import CLAIM_ROUNDS, half_width, interval95, log_ratios, lower_bound95, median
from fitness.target import ProblemError
from populations.calibration import Baseline, Floor
from populations.verdict import Timing

PROMOTION_ROUNDS = 15
HOPELESS = 3.0  # a kernel this many times slower than the baseline leaves a screen after one round
EXACT_SHARE = 1 / 8  # of a promotion's timed sets, chosen in secret, that float64 judges at the plain bound

Check = Callable[[ArgumentSets, int], None]


class Unbelievable(Exception):
    """A claim faster than the hardware allows, or too fast for the clock."""


@dataclass(frozen=True)
class Rig:
    """How kernels are run here: cores they may use, last-level cache, confinement, trusted probes."""

    cores: int
    cache_bytes: int
    sandboxed: bool
    build_probe: Callable[[str], Path]

    def contender(
        self, course: Course, library: Path, check: Check | None, timeout_s: float, fixed_s: float
    ) -> KernelContender:
        """A kernel on a course."""
        return KernelContender(
            course,
            library,
            check,
            cores=self.cores,
            sandboxed=self.sandboxed,
            timeout_s=timeout_s,
            fixed_s=fixed_s,
        )

    def fixed_cost(self, course: Course) -> float:
        """What a block costs beside its launches."""
        return fixed_cost(course, self.build_probe("copy"), cores=self.cores, sandboxed=self.sandboxed)


class Stand:
    """One timed case under one policy.

    Args:
        loaded: the case.
        policy: "warm" or "cold".
        standings: what the gate said of each baseline.
        rig: how kernels are run.

    Attributes:
        baselines: their times; the strongest that counts is raced against.
        noise: half-width of the strongest baseline against itself, of log speed-up.
        floor: below it a claim is not believed.

    Raises:
        ProblemError: no baseline runs at all.
    """

    def __init__(self, loaded: LoadedCase, policy: str, standings: dict[str, Standing], rig: Rig) -> None:
        self._loaded = loaded
        self._rig = rig
        self.policy = policy
        self._course = self._new_course()
        contenders = {
            name: baselines.contender(name, loaded, self._course)
            for name, standing in standings.items()
            if standing.runs
        }
        if not contenders:
            why = "; ".join(f"{name}: {standing.reason}" for name, standing in standings.items())
            raise ProblemError(f"case {loaded.case.name}: no baseline runs here ({why}); mend the Model")
        samples = dict(
            zip(contenders, race(self._course, list(contenders.values()), PROMOTION_ROUNDS), strict=True)
        )
        # Where no baseline passes the gate, speed is still shown, relative to the fastest one.
        counted = [name for name in samples if standings[name].counts] or list(samples)
        self._name = min(counted, key=lambda name: median(samples[name]))
        self._strongest = contenders[self._name]
        self._seconds = median(samples[self._name])
        again = race(self._course, [self._strongest, self._strongest], PROMOTION_ROUNDS)
        self.noise = half_width(log_ratios(*again))
        self.baselines = [self._baseline(name, standings[name], samples.get(name)) for name in standings]
        self._fixed_s = rig.fixed_cost(self._course)
        self.floor = self._measured_floor()

    def screen(self, library: Path, rounds: int) -> Timing:
        """A few rounds: enough for a rank. A hopeless kernel leaves after one.

        Raises:
            Unbelievable, WrongOutput, Disturbance, KernelDied: what the kernel did.
        """
        check = checker(self._loaded)
        timing = self._race(library, check, 1)
        if timing.speedup > 1 / HOPELESS:
            timing = self._race(library, check, rounds)
        if timing.median < self.floor.seconds:
            self._look_again()
            self._believe(self._race(library, check, CLAIM_ROUNDS))
        return timing

    def promote(self, library: Path) -> Timing:
        """The rounds that a claim needs; float64 judges some of the timed sets.

        Raises:
            Unbelievable, WrongOutput, Disturbance, KernelDied: what the kernel did.
        """
        self._fixed_s = min(self._fixed_s, self._rig.fixed_cost(self._course))
        check = checker(self._loaded, exact_share=EXACT_SHARE)
        timing = self._race(library, check, PROMOTION_ROUNDS)
        if timing.ci95[1] < self.floor.seconds:
            self._look_again()
            timing = self._race(library, check, PROMOTION_ROUNDS)
            self._believe(timing)
        return timing

    def _believe(self, timing: Timing) -> None:
        if timing.ci95[1] < self.floor.seconds:
            raise Unbelievable(
                f"faster than the floor: {timing.median * 1e6:.1f} us, where moving the compulsory bytes "
                f"takes {self.floor.seconds * 1e6:.1f} us"
            )

    def _look_again(self) -> None:
        """The machine may have been busy when the floor was measured."""
        self.floor = min(self.floor, self._measured_floor(), key=lambda floor: floor.seconds)

    def _race(self, library: Path, check: Check, rounds: int) -> Timing:
        course, case = self._course, self._loaded.case
        timeout_s = max(2.0, 20 * self._seconds * course.count)
        contender = self._rig.contender(course, library, check, timeout_s, self._fixed_s)
        try:
            base, times = race(course, [self._strongest, contender], rounds)
        finally:
            contender.close()
        if min(times) * course.count < self._fixed_s / 4:
            raise Unbelievable(
                f"too fast for this clock: {course.count} launches take less than a quarter of what "
                f"a block costs beside them ({self._fixed_s * 1e6:.0f} us); give the problem larger sizes"
            )
        ratios = log_ratios(base, times)
        fitness = lower_bound95(ratios) if rounds >= CLAIM_ROUNDS else None
        low, high = interval95(ratios)
        seconds = median(times)
        return Timing(
            policy=self.policy,
            median=seconds,
            ci95=interval95(times),
            baseline=self._name,
            baseline_median=median(base),
            speedup=math.exp(median(ratios)),
            speedup_ci95=(math.exp(low), math.exp(high)),
            fitness=fitness,
            noise_floor=self.noise,
            rank=fitness if fitness is not None else median(ratios) - 2 * self.noise,
            gbps=case.bytes / seconds / 1e9,
            tflops=case.flops / seconds / 1e12 if case.flops else None,
            samples=tuple(times),
            baseline_samples=tuple(base),
        )

    def _new_course(self) -> Course:
        case, inputs = self._loaded.case, len(self._loaded.case.inputs)
        refill = self._loaded.refiller(secrets.token_hex(16))
        return Course(
            case.arguments,
            inputs + len(case.parameters),
            lambda ordinal, tensors: refill.fill(ordinal, tensors[:inputs], tensors[inputs:]),
            policy=self.policy,
            cache_bytes=self._rig.cache_bytes,
            seconds=baselines.rough_seconds(self._loaded),
        )

    def _measured_floor(self) -> Floor:
        case = self._loaded.case
        set_bytes = sum(spec.nbytes for spec in case.arguments)
        times = {name: self._probe(name, set_bytes) for name in PROBES}
        peak = FMA_FLOPS * self._rig.cores / self._probe("fma", 1 << 10)
        return floor(case, self.policy, times, peak)

    def _probe(self, name: str, nbytes: int) -> float:
        course = Course(
            probe_arguments(name, nbytes),
            1,
            _uniform,
            policy=self.policy,
            cache_bytes=self._rig.cache_bytes,
            seconds=self._seconds,
        )
        library = self._rig.build_probe(name)
        contender = self._rig.contender(course, library, None, 10.0, self._rig.fixed_cost(course))
        try:
            return min(race(course, [contender], CLAIM_ROUNDS)[0])  # a floor errs on the fast side
        finally:
            contender.close()
            course.close()

    def _baseline(self, name: str, standing: Standing, samples: Sequence[float] | None) -> Baseline:
        return Baseline(
            name=name,
            case=self._loaded.case.name,
            policy=self.policy,
            counted=standing.counts,
            reason=standing.reason,
            median=None if samples is None else median(samples),
            ci95=None if samples is None else interval95(samples),
        )


def checker(loaded: LoadedCase, exact_share: float = 0.0) -> Check:
    """Compares a set's outputs with the framework's on the same inputs, at twice the bound.

    A secret share of the sets is judged by float64 at the plain bound instead. Where the bound is sampled,
    the comparison with the framework allows its largest value everywhere: sampling takes longer than a block.

    Args:
        loaded: the case.
        exact_share: of the sets.
    """
    inputs, case = len(loaded.case.inputs), loaded.case
    sampled = None if loaded.tolerance is not None else _uniform_bounds(loaded)
    rng = Random(secrets.randbits(64))

    def check(sets: ArgumentSets, index: int) -> None:
        tensors, outputs = sets.inputs(index), sets.outputs(index)
        left = sets.poison_left(index)
        if left:
            raise WrongOutput(f"output {left} not written everywhere on case {case.name} in a timed launch")
        if rng.random() < exact_share:
            found = judged(loaded, Draw(tensors[:inputs], tensors[inputs:]), outputs)
        else:
            want = loaded.framework(tensors[:inputs], tensors[inputs:])
            allowed = sampled or bounds(
                loaded.tolerance, tensors[:inputs], tensors[inputs:], want, case.outputs
            )
            found = compare(outputs, want, allowed, scale=2.0)
        if not found.max_error <= 1.0:
            raise WrongOutput(describe(found, case.name) + " in a timed launch", found.evidence)

    return check


def _uniform_bounds(loaded: LoadedCase) -> list[Bound]:
    draw = loaded.draw("bounds", checking=False)
    want = loaded.reference(draw.inputs, draw.parameters)
    inputs, parameters = widened(draw.inputs), widened(draw.parameters)
    sampled = bounds(None, inputs, parameters, want, loaded.case.outputs, loaded.reference)
    return [replace(bound, elementwise=bound.elementwise.max().float()) for bound in sampled]


def _uniform(_ordinal: int, tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        tensor.uniform_(0.5, 1.0)
