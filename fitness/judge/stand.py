"""One timed case under one policy: its course, its baselines, its noise and floor, and timings on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from torch import Tensor

from fitness.judge.baselines import Standing
from fitness.judge.bounds import Bound, bounds
from fitness.judge.compare import Comparison, compare
from fitness.judge.course import race
from fitness.judge.gate import describe, judged, moved, widened
from fitness.judge.loaded import NARROW, Draw, LoadedCase
from fitness.judge.rig import Check, Rig, Sets, Unbelievable, WrongOutput
from fitness.judge.statistics import CLAIM_ROUNDS, half_width, interval95, log_ratios, lower_bound95, median
from fitness.target import ProblemError
from populations.calibration import Baseline
from populations.verdict import Timing

HOPELESS = 3.0  # a kernel this many times slower than the baseline leaves a screen after one round
EXACT_SHARE = 1 / 8  # of a promotion's timed sets, chosen in secret, that float64 judges at the plain bound
LIMIT_S, LIMIT_BASELINES = 2.0, 20  # of one block: the longer of the two


class Stand:
    """One timed case under one policy.

    Args:
        loaded: the case.
        policy: "warm" or "cold".
        standings: what the gate said of each baseline.
        rig: how kernels run.

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
        self._course = rig.course(loaded, policy)
        contenders = {
            name: rig.baseline(name, loaded, self._course)
            for name, standing in standings.items()
            if standing.runs
        }
        if not contenders:
            why = "; ".join(f"{name}: {standing.reason}" for name, standing in standings.items())
            raise ProblemError(f"case {loaded.case.name}: no baseline runs here ({why}); mend the Model")
        samples = dict(
            zip(contenders, race(self._course, list(contenders.values()), rig.rounds), strict=True)
        )
        # Where no baseline passes the gate, speed is still shown, relative to the fastest one.
        counted = [name for name in samples if standings[name].counts] or list(samples)
        self._name = min(counted, key=lambda name: median(samples[name]))
        self._strongest = contenders[self._name]
        self._seconds = median(samples[self._name])
        for name, contender in contenders.items():
            if name != self._name:
                contender.close()
        again = race(self._course, [self._strongest, self._strongest], rig.rounds)
        self.noise = half_width(log_ratios(*again))
        self.baselines = [self._baseline(name, standings[name], samples.get(name)) for name in standings]
        self._least_block_s = rig.least_block_s(self._course)
        self.floor = rig.floor(loaded.case, self._course, self._seconds)

    def screen(self, kernel: Path, rounds: int) -> Timing:
        """A few rounds: enough for a rank. A hopeless kernel leaves after one.

        Raises:
            Unbelievable, WrongOutput, Disturbance, KernelDied: what the kernel did.
        """
        check = checker(self._loaded)
        timing = self._race(kernel, check, rounds, hopeless=HOPELESS)
        if timing.median < self.floor.seconds:
            self._look_again()
            self._believe(self._race(kernel, check, CLAIM_ROUNDS))
        return timing

    def promote(self, kernel: Path) -> Timing:
        """The rounds that a claim needs; float64 judges some of the timed sets.

        Raises:
            Unbelievable, WrongOutput, Disturbance, KernelDied: what the kernel did.
        """
        self._least_block_s = self._rig.least_block_s(self._course)
        check = checker(self._loaded, exact_share=EXACT_SHARE)
        timing = self._race(kernel, check, self._rig.rounds)
        if timing.ci95[1] < self.floor.seconds:
            self._look_again()
            timing = self._race(kernel, check, self._rig.rounds)
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
        measured = self._rig.floor(self._loaded.case, self._course, self._seconds)
        self.floor = min(self.floor, measured, key=lambda floor: floor.seconds)

    def _race(self, kernel: Path, check: Check, rounds: int, hopeless: float | None = None) -> Timing:
        """Rounds beside the strongest baseline; a kernel this many times slower leaves after the first."""
        course, case = self._course, self._loaded.case
        limit_s = max(LIMIT_S, LIMIT_BASELINES * self._seconds * course.count)
        contender = self._rig.contender(kernel, case, course, check, limit_s)
        try:
            pair = [self._strongest, contender]
            base, times = race(course, pair, 1 if hopeless else rounds)
            if hopeless and times[0] < hopeless * base[0]:
                for samples, more in zip((base, times), race(course, pair, rounds - 1), strict=True):
                    samples += more
        finally:
            contender.close()
        if min(times) * course.count < self._least_block_s:
            raise Unbelievable(
                f"too fast for this clock: {course.count} launches take less than "
                f"{self._least_block_s * 1e6:.0f} us; give the problem larger sizes"
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
    rng = SystemRandom()

    def check(sets: Sets, index: int) -> None:
        tensors, outputs = sets.inputs(index), sets.outputs(index)
        damage = sets.damage(index)
        if damage:
            raise WrongOutput(f"{damage} on case {case.name} in a timed launch")
        draw = Draw(tensors[:inputs], tensors[inputs:])
        exact = rng.random() < exact_share
        found = judged(loaded, draw, outputs) if exact else nearly(draw, outputs)
        if not found.max_error <= 1.0:
            raise WrongOutput(describe(found, case.name) + " in a timed launch", found.evidence)

    def nearly(draw: Draw, outputs: list[Tensor]) -> Comparison:
        worst = 0.0
        for first, part, shown in loaded.pieces(draw, outputs):
            want = loaded.nearly(part.inputs, part.parameters)
            read, held, want = (_float32(ts) for ts in (part.inputs, part.parameters, want))
            allowed = sampled or bounds(loaded.tolerance, read, held, want, case.outputs)
            found = compare(shown, want, allowed, scale=2.0)
            if found.evidence:
                return moved(found, first)
            worst = max(worst, found.max_error)
        return Comparison(worst)

    return check


def _float32(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.float() if tensor.dtype in NARROW else tensor for tensor in tensors]


def _uniform_bounds(loaded: LoadedCase) -> list[Bound]:
    draw = loaded.draw("bounds", checking=False)
    want = loaded.reference(draw.inputs, draw.parameters)
    inputs, parameters = widened(draw.inputs), widened(draw.parameters)
    sampled = bounds(None, inputs, parameters, want, loaded.case.outputs, loaded.reference)
    return [replace(bound, elementwise=bound.elementwise.max().float()) for bound in sampled]
