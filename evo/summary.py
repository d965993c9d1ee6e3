"""What a run, a verdict and a calibration are in JSON, and who won: facts, no formatting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fitness.card import ProblemCard
from populations.calibration import Calibration
from populations.run import Member, Run
from populations.verdict import CaseVerdict, Timing, Verdict


def run_summary(run: Run) -> dict[str, Any]:
    """What ``run --json`` and ``resume --json`` print."""
    status = run.status()
    keys = ("run_dir", "problem", "target", "evaluations", "best", "seed_best")
    return {
        **{key: status[key] for key in keys},
        "baselines": baselines(run.calibration),
        "ledger": status["ledger"],
        "stopped": status["stopped"],
    }


def verdict_summary(
    verdict: Verdict,
    *,
    source_sha: str,
    language: str,
    target: str,
    calibration: Calibration | None,
    card: ProblemCard,
) -> dict[str, Any]:
    """What ``verify --json`` prints."""
    whole = verdict.to_json()
    keys = ("status", "stage", "reason", "evidence", "general", "not_general", "numerics", "isolation")
    return {
        **{key: whole[key] for key in keys},
        "timed": verdict.timed,
        "language": language,
        "target": target,
        "problem": card.name,
        "policy": card.policy,
        "source_sha": source_sha,
        "cases": [_case(case, card.policy) for case in verdict.cases],
        "baselines": baselines(calibration),
        "speedup": verdict.speedup,
        "fitness": verdict.fitness,
        "verifier": verdict.verifier,
        "key": verdict.key,
        "notes": [*card.notes, *verdict.notes],
    }


def baselines(calibration: Calibration | None) -> list[dict[str, Any]]:
    """Every contender on every timed case and policy; times in microseconds."""
    found = calibration.baselines if calibration else ()
    return [
        {
            "name": b.name,
            "case": b.case,
            "policy": b.policy,
            "counted": b.counted,
            "reason": b.reason,
            "median_us": None if b.median is None else b.median * 1e6,
            "ci95_us": None if b.ci95 is None else [bound * 1e6 for bound in b.ci95],
        }
        for b in found
    ]


@dataclass(frozen=True)
class Standing:
    """How the best kernel stands at the end.

    Attributes:
        best_seed: the best starting kernel; None: none was measured.
        best_evolved: the best kernel that is not one.
        best: the better of the two.
        noise: half-width of the widest A/A interval, of log speed-up.
        beats_baseline: whether the lower bound of the best kernel's gain is above the noise floor.
        beats_seed: whether that lower bound is above the best seed's median; None where it cannot be told.
    """

    best_seed: Member | None
    best_evolved: Member | None
    best: Member | None
    noise: float
    beats_baseline: bool
    beats_seed: bool | None


def standing(run: Run) -> Standing:
    """Who won."""
    ranked = run.top(run.evaluations or 1)
    seed = next((member for member in ranked if member.operator == "seed"), None)
    evolved = next((member for member in ranked if member.operator != "seed"), None)
    best = ranked[0] if ranked else None
    noise = max((n.half_width for n in run.calibration.noise), default=0.0) if run.calibration else 0.0
    claim = best.fitness if best is not None else None
    return Standing(
        best_seed=seed,
        best_evolved=evolved,
        best=best,
        noise=noise,
        beats_baseline=claim is not None and claim > noise,
        beats_seed=_beats(evolved, seed),
    )


def _beats(evolved: Member | None, seed: Member | None) -> bool | None:
    if seed is None or seed.speedup is None:
        return None
    if evolved is None or evolved.fitness is None:
        return False
    return evolved.fitness > math.log(seed.speedup)


def _case(case: CaseVerdict, policy: str) -> dict[str, Any]:
    declared = next((timing for timing in case.timings if timing.policy == policy), None)
    return {
        "name": case.name,
        "held_out": case.held_out,
        "derived": case.derived,
        "status": case.status.value,
        "reason": case.reason,
        "max_error": case.max_error,
        **(_speed(declared) if declared else {}),
        "timings": [
            {"policy": timing.policy, "baseline": timing.baseline, **_speed(timing)}
            for timing in case.timings
        ],
    }


def _speed(timing: Timing) -> dict[str, Any]:
    return {
        "median_us": timing.median * 1e6,
        "ci95_us": [bound * 1e6 for bound in timing.ci95],
        "speedup": timing.speedup,
        "speedup_ci95": list(timing.speedup_ci95),
        "fitness": timing.fitness,
        "noise_floor": timing.noise_floor,
        "gbps": timing.gbps,
        "tflops": timing.tflops,
    }
