"""The judge of one problem on one target: the gate, then the stands, and the verdict they add up to."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import replace
from pathlib import Path

from fitness.judge import baselines
from fitness.judge.gate import Failure, Gate
from fitness.judge.problem import Problem
from fitness.judge.rig import Disturbance, KernelDied, Rig, Unbelievable, WrongOutput
from fitness.judge.stand import Stand
from populations.calibration import Calibration, Noise
from populations.verdict import CaseVerdict, Outcome, Stage, Timing, Verdict

SCREEN_ROUNDS = 3
BUSY = 0.5  # of the blocks: a note says so


class Bench:
    """One problem, its gate, and a stand for each timed case and policy.

    Args:
        problem: the loaded problem, its checking inputs strengthened.
        rig: how kernels run.
        machine: facts for the record.
        verifier: hash of this verifier.
    """

    def __init__(self, problem: Problem, rig: Rig, *, machine: dict[str, str], verifier: str) -> None:
        policy = problem.card.policy
        if rig.policies and policy not in rig.policies:
            policy = rig.policies[0]
        self.problem = replace(problem, card=replace(problem.card, policy=policy))
        self._policy = policy
        self._rig = rig
        self._machine = machine
        self._verifier = verifier
        self._gate = Gate(problem, rig)
        self._stands: dict[tuple[str, str], Stand] = {}
        self._calibration: Calibration | None = None  # None: not measured yet

    def calibrate(self) -> Calibration:
        """Gate and time the baselines; measure noise and the floor of each timed case and policy. Once.

        Raises:
            ProblemError: no baseline runs on a case.
        """
        if self._calibration is not None:
            return self._calibration
        for loaded in self.problem.cases:
            if loaded.case.timed:
                key = secrets.token_hex(16)
                names = (*self._rig.baselines(loaded), *loaded.named_baselines)
                standings = {name: baselines.standing(name, loaded, key) for name in names}
                with self._rig.quiet():
                    for policy in self._rig.policies:
                        self._stands[loaded.case.name, policy] = Stand(loaded, policy, standings, self._rig)
        self._calibration = Calibration(
            baselines=tuple(each for stand in self._stands.values() for each in stand.baselines),
            noise=tuple(Noise(*key, stand.noise) for key, stand in self._stands.items()),
            floors=tuple(stand.floor for stand in self._stands.values()),
            machine=self._machine,
        )
        return self._calibration

    def screen(self, kernel: Path) -> Verdict:
        """Smoke and search gate, then a few rounds under the declared policy: a rank, not a claim."""
        return self._judged(kernel, promotion=False)

    def promote(self, kernel: Path) -> Verdict:
        """All gates, derived cases, and the rounds that a claim needs, under both policies."""
        return self._judged(kernel, promotion=True)

    def _judged(self, kernel: Path, *, promotion: bool) -> Verdict:
        started, clocked, (taken, disturbed) = time.monotonic(), self._clocked_s(), self._blocks()
        key = secrets.token_hex(16)  # drawn after the source is frozen
        verdict = self._gated(kernel, key, promotion=promotion)
        taken, disturbed = (now - then for now, then in zip(self._blocks(), (taken, disturbed), strict=True))
        return replace(
            verdict,
            key=key,
            verifier=self._verifier,
            isolation=self._rig.isolation,
            numerics=self._rig.numerics,
            device_s=time.monotonic() - started,
            clocked_s=self._clocked_s() - clocked,
            telemetry=self._rig.telemetry() if promotion else {},
            notes=(*self.problem.card.notes, *busy(taken, disturbed)),
        )

    def _blocks(self) -> tuple[int, int]:
        """Timed blocks so far, and those of them that were disturbed to the end."""
        counts = [stand.blocks for stand in self._stands.values()]
        return sum(taken for taken, _ in counts), sum(disturbed for _, disturbed in counts)

    def _clocked_s(self) -> float:
        return sum(stand.clocked_s for stand in self._stands.values())

    def _gated(self, kernel: Path, key: str, *, promotion: bool) -> Verdict:
        try:
            cases = self._gate.passed(kernel, key, promotion=promotion)
        except Failure as failure:
            reason = failure.case.reason or "failed"
            return Verdict(failure.case.status, failure.stage, reason, failure.evidence, (failure.case,))
        derived = self._gate.derived(kernel, key) if promotion else []
        wrong = next((c.name for c in derived if c.status is not Outcome.CORRECT), None)
        verdict = self._timed(kernel, cases, promotion=promotion)
        if wrong is not None and verdict.rank is not None:  # at equal speed, search prefers a general one
            noise = max(stand.noise for stand in self._stands.values() if stand.policy == self._policy)
            verdict = replace(verdict, rank=verdict.rank - noise)
        return replace(
            verdict,
            cases=verdict.cases + tuple(derived),
            general=(wrong is None) if promotion else None,
            not_general=wrong,
        )

    def _timed(self, kernel: Path, cases: list[CaseVerdict], *, promotion: bool) -> Verdict:
        timed = [loaded.case.name for loaded in self.problem.cases if loaded.case.timed]
        if not (self._rig.policies and timed):
            why = "correct, not timed" + ("" if timed else ": no timed case fits this device")
            return Verdict(Outcome.CORRECT, Stage.PROMOTION_GATE, why, None, tuple(cases))
        self.calibrate()
        try:
            with self._rig.quiet():
                measured = self._measured(kernel, promotion=promotion)
        except WrongOutput as wrong:
            return Verdict(Outcome.INCORRECT, Stage.TIMING, str(wrong), wrong.evidence, tuple(cases))
        except KernelDied as death:
            reason = f"{death.reason} in a timed launch"
            return Verdict(death.outcome, Stage.TIMING, reason, None, tuple(cases))
        except (Disturbance, Unbelievable) as why:
            return Verdict(Outcome.CORRECT, Stage.TIMING, str(why), None, tuple(cases))
        counted = [timings[0] for timings in measured.values()]
        fitness = [timing.fitness for timing in counted if timing.fitness is not None]
        return Verdict(
            status=Outcome.MEASURED,
            stage=Stage.TIMING,
            reason="measured" if promotion else "screened",
            cases=tuple(
                replace(c, status=Outcome.MEASURED, timings=measured[c.name]) if c.name in measured else c
                for c in cases
            ),
            speedup=math.exp(_mean([math.log(timing.speedup) for timing in counted])),
            fitness=_mean(fitness) if fitness else None,
            rank=_mean([timing.rank for timing in counted]),
        )

    def _measured(self, kernel: Path, *, promotion: bool) -> dict[str, tuple[Timing, ...]]:
        """Timings of each timed case, the declared policy first; a screen takes that one alone."""
        measured: dict[str, tuple[Timing, ...]] = {}
        for name in dict.fromkeys(name for name, _ in self._stands):
            declared = self._stands[name, self._policy]
            if promotion:
                others = [
                    self._stands[name, policy] for policy in self._rig.policies if policy != self._policy
                ]
                measured[name] = tuple(stand.promote(kernel) for stand in (declared, *others))
            else:
                measured[name] = (declared.screen(kernel, SCREEN_ROUNDS),)
        return measured


def busy(taken: int, disturbed: int) -> list[str]:
    """What to say where the machine disturbed much of what was timed.

    Args:
        taken, disturbed: blocks, and those of them in which threads waited for cores to the end.
    """
    if disturbed <= BUSY * taken:
        return []
    return [
        f"the machine was busy: {disturbed / taken:.0%} of the timed blocks were disturbed, so times may be "
        "far too long; measure again when it has nothing else to do"
    ]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
