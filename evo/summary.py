"""What a run, a verdict and a calibration are in JSON, and who won: facts, no formatting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from evo.course import SEED
from fitness.card import ProblemCard
from populations.calibration import Calibration
from populations.export_check import ExportCheck
from populations.run import Member, Run
from populations.verdict import CaseVerdict, Timing, Verdict


def run_summary(run: Run) -> dict[str, Any]:
    """What ``run --json`` and ``resume --json`` print."""
    status, stand = run.status(), standing(run)
    keys = ("run_dir", "problem", "target", "evaluations", "best", "seed_best")
    return {
        **{key: status[key] for key in keys},
        "beats_baseline": stand.beats_baseline,
        "against_seed": stand.against_seed,
        "baselines": baselines(run.calibration),
        "export": exported(run.export_check(stand.best.id), stand.best.verdict) if stand.best else None,
        "ledger": status["ledger"],
        "models": [model["name"] for model in run.settings["search"].get("models", ())],
        "calls": status["calls"],
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
    check: ExportCheck | None = None,
) -> dict[str, Any]:
    """What ``verify --json`` prints."""
    whole = verdict.to_json()
    keys = ("status", "stage", "reason", "evidence", "general", "not_general", "numerics", "isolation")
    return {
        **{key: whole[key] for key in (*keys, "profile")},
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
        "export": exported(check, verdict),
        "verifier": verdict.verifier,
        "key": verdict.key,
        "notes": list(dict.fromkeys((*card.notes, *verdict.notes))),
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


def exported(check: ExportCheck | None, verdict: Verdict | None) -> dict[str, Any] | None:
    """What running an exported file told, with the device's time of one call beside its wall time."""
    if check is None:
        return None
    timings = [case.timings[0] for case in verdict.cases if case.timings] if verdict else []
    return {**check.to_json(), "device_us": timings[0].median * 1e6 if timings else None}


class Comparison(StrEnum):
    """One kernel beside another, both measured for a claim."""

    AHEAD = "ahead"  # its whole interval lies above the other's, by more than the noise floor
    LEVEL = "level"  # they cannot be told apart
    BEHIND = "behind"


@dataclass(frozen=True)
class Standing:
    """How the best kernel stands at the end, under the declared policy.

    Attributes:
        best_seed: the best starting kernel; None: none was measured.
        best_evolved: the best kernel that is not one.
        best: the better of the two.
        noise: half-width of the widest A/A interval, of log speed-up.
        beats_baseline: whether the lower bound of the best kernel's gain is above the noise floor.
        against_seed: the best evolved kernel beside the best seed; None: not both were measured for a claim.
    """

    best_seed: Member | None
    best_evolved: Member | None
    best: Member | None
    noise: float
    beats_baseline: bool
    against_seed: Comparison | None


def standing(run: Run) -> Standing:
    """Who won."""
    ranked = run.top(run.evaluations or 1)
    seed = next((member for member in ranked if member.operator == SEED), None)
    evolved = next((member for member in ranked if member.operator != SEED), None)
    best = ranked[0] if ranked else None
    noise = run.calibration.noise_floor(run.card["policy"]) if run.calibration else 0.0
    claim = best.fitness if best is not None else None
    return Standing(
        best_seed=seed,
        best_evolved=evolved,
        best=best,
        noise=noise,
        beats_baseline=claim is not None and claim > noise,
        against_seed=compared(evolved.verdict, seed.verdict, noise) if evolved and seed else None,
    )


def claimed_interval(verdict: Verdict | None) -> tuple[float, float] | None:
    """95 percent interval of a speed-up (geometric mean over timed cases); None where there is no claim."""
    if verdict is None or verdict.fitness is None:
        return None
    declared = [case.timings[0] for case in verdict.cases if case.timings]
    low, high = (fmean(math.log(timing.speedup_ci95[end]) for timing in declared) for end in (0, 1))
    return math.exp(low), math.exp(high)


def compared(ours: Verdict | None, theirs: Verdict | None, noise: float) -> Comparison | None:
    """How one kernel stands beside another.

    Args:
        ours: its verdict.
        theirs: the other's.
        noise: the floor that a difference of log speed-ups has to rise above.

    Returns:
        None unless both were measured for a claim.
    """
    one, other = claimed_interval(ours), claimed_interval(theirs)
    if one is None or other is None:
        return None
    assert ours is not None and ours.speedup and theirs is not None and theirs.speedup
    gain = math.log(ours.speedup / theirs.speedup)
    if one[0] > other[1] and gain > noise:
        return Comparison.AHEAD
    return Comparison.BEHIND if one[1] < other[0] and -gain > noise else Comparison.LEVEL


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
