"""The judge of one problem on this CPU: gate, baselines, courses, and the verdict they add up to."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fitness.judge import baselines
from fitness.judge.awake import awake
from fitness.judge.bounds import Bound, bounds
from fitness.judge.buffers import ArgumentSets
from fitness.judge.compare import compare
from fitness.judge.course import (
    BaselineContender,
    Course,
    Disturbance,
    KernelContender,
    WrongOutput,
    fixed_cost,
    race,
)
from fitness.judge.floor import FMA_FLOPS, PROBES, floor, probe_arguments
from fitness.judge.gate import Failure, Gate, describe, widened
from fitness.judge.problem import LoadedCase, Problem
from fitness.judge.runner import KernelDied
from fitness.judge.statistics import (
    CLAIM_ROUNDS,
    half_width,
    interval95,
    log_ratios,
    lower_bound95,
    median,
)
from populations.calibration import Baseline, Calibration, Floor, Noise
from populations.verdict import CaseVerdict, Outcome, Stage, Timing, Verdict

SCREEN_ROUNDS = 3
CLAIM = 15  # rounds of a promotion
NEAR_FLOOR = 1.1  # within 10 percent of the floor: measured again
POLICIES = ("warm", "cold")


@dataclass
class Stand:
    """All that is kept of one timed case under one policy."""

    loaded: LoadedCase
    course: Course
    baseline: BaselineContender
    baseline_name: str
    baseline_seconds: float
    noise: float
    floor: Floor
    fixed_s: float


class Bench:
    """The judge's state: one problem, its gate, and a stand per timed case and policy.

    Args:
        problem: the loaded problem, its checking inputs strengthened.
        cores: cores a kernel may use.
        cache_bytes: last-level cache.
        sandboxed: whether runners are confined.
        build_probe: compiles a trusted probe by name; returns the library.
        machine: facts for the record.
        verifier: hash of this verifier.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        cores: int,
        cache_bytes: int,
        sandboxed: bool,
        build_probe: Callable[[str], Path],
        machine: dict[str, str],
        verifier: str,
    ) -> None:
        self.problem = problem
        self._policy = problem.card.policy
        self._cores = cores
        self._cache_bytes = cache_bytes
        self._sandboxed = sandboxed
        self._build_probe = build_probe
        self._machine = machine
        self._verifier = verifier
        self._gate = Gate(problem, cores=cores, sandboxed=sandboxed)
        self._stands: dict[tuple[str, str], Stand] = {}
        self._calibration: Calibration | None = None  # None: not measured yet

    # -- calibration ---------------------------------------------------------------------------------

    def calibrate(self) -> Calibration:
        """Gate and time the baselines; measure noise and the floor of each timed case and policy. Once."""
        if self._calibration is not None:
            return self._calibration
        found: list[Baseline] = []
        timed = [loaded for loaded in self.problem.cases if loaded.case.timed]
        for loaded in timed:
            refusals = {
                name: baselines.refusal(name, loaded, secrets.token_hex(16)) for name in baselines.NAMES
            }
            with awake(self._cores):
                for policy in POLICIES:
                    found += self._stand(loaded, policy, refusals)
        self._calibration = Calibration(
            baselines=tuple(found),
            noise=tuple(Noise(*key, stand.noise) for key, stand in self._stands.items()),
            floors=tuple(stand.floor for stand in self._stands.values()),
            machine=self._machine,
        )
        return self._calibration

    def _stand(self, loaded: LoadedCase, policy: str, refusals: dict[str, str | None]) -> list[Baseline]:
        case = loaded.case
        course = self._course(loaded, policy)
        contenders = {}
        for name, refused in refusals.items():
            if refused is None or refused.startswith("fails"):
                contenders[name] = baselines.contender(name, loaded, course)
        samples = dict(zip(contenders, race(course, list(contenders.values()), CLAIM), strict=True))
        counted = {name: median(times) for name, times in samples.items() if refusals[name] is None}
        # Where no baseline passes the gate, speed is still shown, relative to the fastest one.
        strongest = min(counted or samples, key=lambda name: median(samples[name]))
        again = race(course, [contenders[strongest], contenders[strongest]], CLAIM)
        noise = half_width(log_ratios(*again))
        seconds = median(samples[strongest])
        self._stands[case.name, policy] = Stand(
            loaded,
            course,
            contenders[strongest],
            strongest,
            seconds,
            noise,
            self._floor(loaded, policy, seconds),
            self._fixed_cost(course),
        )
        return [
            Baseline(
                name=name,
                case=case.name,
                policy=policy,
                counted=refused is None,
                reason=refused,
                median=median(samples[name]) if name in samples else None,
                ci95=interval95(samples[name]) if name in samples else None,
            )
            for name, refused in refusals.items()
        ]

    def _course(self, loaded: LoadedCase, policy: str) -> Course:
        case = loaded.case
        refill = loaded.refiller(secrets.token_hex(16))
        inputs = len(case.inputs)
        return Course(
            case.arguments,
            inputs + len(case.parameters),
            lambda ordinal, tensors: refill.fill(ordinal, tensors[:inputs], tensors[inputs:]),
            policy=policy,
            cache_bytes=self._cache_bytes,
            seconds=baselines.rough_seconds(loaded),
        )

    def _floor(self, loaded: LoadedCase, policy: str, seconds: float) -> Floor:
        case = loaded.case
        set_bytes = sum(spec.nbytes for spec in case.arguments)

        def probe(name: str, nbytes: int) -> float:
            course = Course(
                probe_arguments(name, nbytes),
                1,
                _uniform,
                policy=policy,
                cache_bytes=self._cache_bytes,
                seconds=seconds,
            )
            fixed_s = self._fixed_cost(course)
            contender = self._kernel(course, self._build_probe(name), None, timeout_s=10.0, fixed_s=fixed_s)
            try:
                return min(race(course, [contender], CLAIM_ROUNDS)[0])  # a floor errs on the fast side
            finally:
                contender.close()
                course.close()

        times = {name: probe(name, set_bytes) for name in PROBES}
        peak = FMA_FLOPS * self._cores / probe("fma", 1 << 10)
        return floor(case, policy, times, peak)

    # -- verdicts ------------------------------------------------------------------------------------

    def screen(self, library: Path) -> Verdict:
        """Smoke and search gate, then a few rounds under the declared policy: a rank, not a claim."""
        return self._judged(library, promotion=False)

    def promote(self, library: Path) -> Verdict:
        """All gates, derived cases, and the rounds that a claim needs, under both policies."""
        return self._judged(library, promotion=True)

    def _judged(self, library: Path, *, promotion: bool) -> Verdict:
        started = time.monotonic()
        key = secrets.token_hex(16)  # drawn after the source is frozen
        verdict = self._gated(library, key, promotion=promotion)
        return replace(
            verdict,
            key=key,
            verifier=self._verifier,
            isolation="process" if self._sandboxed else "weak",
            device_s=time.monotonic() - started,
            notes=self.problem.card.notes,
        )

    def _gated(self, library: Path, key: str, *, promotion: bool) -> Verdict:
        try:
            cases = self._gate.passed(library, key, promotion=promotion)
        except Failure as failure:
            reason = failure.case.reason or "failed"
            return Verdict(failure.case.status, failure.stage, reason, failure.evidence, (failure.case,))
        derived = self._gate.derived(library, key) if promotion else []
        wrong = next((c.name for c in derived if c.status is not Outcome.CORRECT), None)
        verdict = self._timed(library, cases, promotion=promotion)
        if wrong is not None and verdict.rank is not None:  # at equal speed, search prefers a general one
            noise = max(stand.noise for stand in self._stands.values() if stand.course.policy == self._policy)
            verdict = replace(verdict, rank=verdict.rank - noise)
        return replace(
            verdict,
            cases=verdict.cases + tuple(derived),
            general=(wrong is None) if promotion else None,
            not_general=wrong,
        )

    def _timed(self, library: Path, cases: list[CaseVerdict], *, promotion: bool) -> Verdict:
        self.calibrate()
        others = [policy for policy in POLICIES if policy != self._policy]
        policies = [self._policy, *(others if promotion else [])]
        try:
            with awake(self._cores):
                measured = {
                    name: tuple(
                        self._timing(library, self._stands[name, policy], promotion) for policy in policies
                    )
                    for name in dict.fromkeys(name for name, _ in self._stands)
                }
        except WrongOutput as wrong:
            return Verdict(Outcome.INCORRECT, Stage.TIMING, str(wrong), wrong.evidence, tuple(cases))
        except KernelDied as death:
            return Verdict(
                death.outcome, Stage.TIMING, f"{death.reason} in a timed launch", None, tuple(cases)
            )
        except (Disturbance, Unbelievable) as why:
            return Verdict(Outcome.CORRECT, Stage.TIMING, str(why), None, tuple(cases))
        cases = [
            replace(c, status=Outcome.MEASURED, timings=measured[c.name]) if c.name in measured else c
            for c in cases
        ]
        counted = [timings[0] for timings in measured.values()]
        return Verdict(
            status=Outcome.MEASURED,
            stage=Stage.TIMING,
            reason="measured" if promotion else "screened",
            cases=tuple(cases),
            speedup=math.exp(sum(math.log(t.speedup) for t in counted) / len(counted)),
            fitness=_mean([t.fitness for t in counted if t.fitness is not None]) if promotion else None,
            rank=_mean([t.rank for t in counted]),
        )

    def _timing(self, library: Path, stand: Stand, promotion: bool) -> Timing:
        timing = self._raced(library, stand, CLAIM if promotion else SCREEN_ROUNDS)
        if timing.median < stand.floor.seconds * NEAR_FLOOR:
            # The machine may have been busy when the floor was measured: both once more.
            again = self._floor(stand.loaded, stand.course.policy, stand.baseline_seconds)
            stand.floor = min(stand.floor, again, key=lambda floor: floor.seconds)
            timing = self._raced(library, stand, CLAIM)
            if timing.ci95[1] < stand.floor.seconds:
                raise Unbelievable(
                    f"faster than the floor: {timing.median * 1e6:.1f} us, where moving the compulsory bytes "
                    f"takes {stand.floor.seconds * 1e6:.1f} us"
                )
        return timing

    def _raced(self, library: Path, stand: Stand, rounds: int) -> Timing:
        course, case = stand.course, stand.loaded.case
        timeout_s = max(2.0, 20 * stand.baseline_seconds * course.count)
        check = checker(stand.loaded)
        contender = self._kernel(course, library, check, timeout_s=timeout_s, fixed_s=stand.fixed_s)
        try:
            base, times = race(course, [stand.baseline, contender], rounds)
        finally:
            contender.close()
        ratios = log_ratios(base, times)
        fitness = lower_bound95(ratios) if rounds >= CLAIM_ROUNDS else None
        low, high = interval95(ratios)
        seconds = median(times)
        return Timing(
            policy=course.policy,
            median=seconds,
            ci95=interval95(times),
            baseline=stand.baseline_name,
            baseline_median=median(base),
            speedup=math.exp(median(ratios)),
            speedup_ci95=(math.exp(low), math.exp(high)),
            fitness=fitness,
            noise_floor=stand.noise,
            rank=fitness if fitness is not None else median(ratios) - 2 * stand.noise,
            gbps=case.bytes / seconds / 1e9,
            tflops=case.flops / seconds / 1e12 if case.flops else None,
            samples=tuple(times),
            baseline_samples=tuple(base),
        )

    def _kernel(
        self,
        course: Course,
        library: Path,
        check: Callable[[ArgumentSets, int], None] | None,
        *,
        timeout_s: float,
        fixed_s: float,
    ) -> KernelContender:
        return KernelContender(
            course,
            library,
            check,
            cores=self._cores,
            sandboxed=self._sandboxed,
            timeout_s=timeout_s,
            fixed_s=fixed_s,
        )

    def _fixed_cost(self, course: Course) -> float:
        return fixed_cost(course, self._build_probe("copy"), cores=self._cores, sandboxed=self._sandboxed)


def checker(loaded: LoadedCase) -> Callable[[ArgumentSets, int], None]:
    """Compares a set's outputs with the framework's on the same inputs, at twice the bound.

    Where the bound is sampled, it is sampled once and its largest value allowed everywhere: sampling takes
    many times longer than a block, and float64 has judged the kernel with the exact bound before.
    """
    inputs, case = len(loaded.case.inputs), loaded.case
    sampled = None if loaded.tolerance is not None else _uniform_bounds(loaded)

    def check(sets: ArgumentSets, index: int) -> None:
        tensors = sets.inputs(index)
        want = loaded.framework(tensors[:inputs], tensors[inputs:])
        allowed = sampled or bounds(loaded.tolerance, tensors[:inputs], tensors[inputs:], want, case.outputs)
        found = compare(sets.outputs(index), want, allowed, scale=2.0)
        if not found.max_error <= 1.0:
            raise WrongOutput(describe(found, case.name) + " in a timed launch", found.evidence)

    return check


def _uniform_bounds(loaded: LoadedCase) -> list[Bound]:
    draw = loaded.draw("bounds", checking=False)
    want = loaded.reference(draw.inputs, draw.parameters)
    inputs, parameters = widened(draw.inputs), widened(draw.parameters)
    sampled = bounds(None, inputs, parameters, want, loaded.case.outputs, loaded.reference)
    return [replace(bound, elementwise=bound.elementwise.max().float()) for bound in sampled]


class Unbelievable(Exception):
    """A claim faster than the hardware allows."""


def _uniform(_ordinal: int, tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        tensor.uniform_(0.5, 1.0)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
