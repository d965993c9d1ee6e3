"""One timed case under one policy: its course, its baselines, its noise and floor, and timings on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from fitness.judge.baselines import Standing
from fitness.judge.checker import TWICE, checker
from fitness.judge.course import race
from fitness.judge.loaded import LoadedCase
from fitness.judge.quick import quick
from fitness.judge.retaking import Retaking, Round
from fitness.judge.rig import Check, Contender, Rig, Unbelievable
from fitness.judge.statistics import (
    CLAIM_ROUNDS,
    fair,
    half_width,
    interval95,
    log_ratios,
    lower_bound95,
    median,
)
from fitness.target import ProblemError
from populations.calibration import Baseline
from populations.verdict import Timing

# A kernel this many times slower than the baseline, or than the best so far, leaves a screen after one round.
HOPELESS, BEHIND = 3.0, 1.25
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
        for name, contender in contenders.items():
            if name != self._name:
                contender.close()
        again = race(self._course, [self._strongest, self._strongest], rig.rounds)
        self.noise = half_width(log_ratios(*again))
        self._retaking = Retaking(self.noise)
        self._seconds = min(median(each) for each in (samples[self._name], *again))
        self.baselines = [self._baseline(name, standings[name], samples.get(name)) for name in standings]
        self._best = 0.0  # speed-up of the fastest kernel screened so far
        self._quick = quick(loaded, TWICE) if rig.fuses else None
        self._least_block_s = rig.least_block_s(self._course)
        self.floor = rig.floor(loaded.case, self._course, self._seconds)

    @property
    def clocked_s(self) -> float:
        """Seconds of all timed blocks so far."""
        return self._course.clocked_s

    @property
    def blocks(self) -> tuple[int, int]:
        """How many blocks were taken so far, and how many of them the machine disturbed to the end."""
        return self._course.blocks_taken, self._course.blocks_disturbed

    def screen(self, kernel: Path, rounds: int) -> Timing:
        """A few rounds: enough for a rank. A hopeless kernel leaves after one.

        Raises:
            Unbelievable, WrongOutput, Disturbance, KernelDied: what the kernel did.
        """
        check = checker(self._loaded, quick=self._quick)
        timing = self._race(kernel, check, rounds, leaves=True)
        if timing.median < self.floor.seconds:
            self._look_again()
            self._believe(self._race(kernel, check, CLAIM_ROUNDS))
        self._best = max(self._best, timing.speedup)
        return timing

    def promote(self, kernel: Path) -> Timing:
        """The rounds that a claim needs; float64 judges some of the timed sets.

        Raises:
            Unbelievable, WrongOutput, Disturbance, KernelDied: what the kernel did.
        """
        self._least_block_s = self._rig.least_block_s(self._course)
        check = checker(self._loaded, exact_share=EXACT_SHARE, quick=self._quick)
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

    def _race(self, kernel: Path, check: Check, rounds: int, *, leaves: bool = False) -> Timing:
        """Rounds beside the strongest baseline, of which a kernel far behind sees only the first."""
        course, case = self._course, self._loaded.case
        limit_s = max(LIMIT_S, LIMIT_BASELINES * self._seconds * course.count)
        contender = self._rig.contender(kernel, case, course, check, limit_s)
        try:
            base, times = self._fairly(contender, rounds, leaves=leaves)
        finally:
            contender.close()
        if self._too_short(times):
            raise Unbelievable(
                f"too fast for this clock: {course.count} launches take less than "
                f"{self._least_block_s * 1e6:.0f} us; give the problem larger sizes (or measure again: "
                "the machine may have been busy)"
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

    def _fairly(self, contender: Contender, rounds: int, *, leaves: bool) -> tuple[list[float], list[float]]:
        """Samples of the baseline and of the kernel; no slow mode of the baseline makes the kernel look fast.

        A slow round is taken again while that costs little; else the calibrated time stands for the baseline.
        """

        def again() -> Round:
            (base,), (seconds,) = race(self._course, [self._strongest, contender], 1)
            return base, seconds

        base, times = self._once(contender, rounds, leaves=leaves)
        if self._too_short(times):  # or the clock's fixed cost was measured while the machine was busy
            before, self._least_block_s = self._least_block_s, self._rig.least_block_s(self._course)
            if self._least_block_s < before:
                base, times = self._once(contender, rounds, leaves=leaves)
        base, times = self._retaking.mended(base, times, self._seconds, again)
        base, self._seconds = fair(base, self._seconds, self.noise)
        return base, times

    def _once(self, contender: Contender, rounds: int, *, leaves: bool) -> tuple[list[float], list[float]]:
        pair = [self._strongest, contender]
        base, times = race(self._course, pair, 1 if leaves else rounds)
        if leaves and base[0] / times[0] > max(1 / HOPELESS, self._best / BEHIND):
            more_base, more_times = race(self._course, pair, rounds - 1)
            return base + more_base, times + more_times
        return base, times

    def _too_short(self, times: Sequence[float]) -> bool:
        return min(times) * self._course.count < self._least_block_s

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
