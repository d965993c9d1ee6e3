"""What agents hear of a verdict: all about shown cases; of any other failure its stage, and ``HIDDEN``."""

from __future__ import annotations

import re
from collections.abc import Collection

from operators.agents.context import Speed, Told
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage, Verdict

HIDDEN = "a held-out case failed"
_ABOUT_TEXT = (Stage.ADMIT, Stage.BUILD, Stage.LOAD)  # stages that look at the source, not at cases


def told(
    verdict: Verdict, shown: Collection[str], hidden: Collection[str], floors: dict[str, float] | None = None
) -> Told:
    """A verdict as agents may hear it.

    Args:
        verdict: all that the judge said.
        shown: names of the cases that agents may see.
        hidden: names of all others of the problem.
        floors: seconds by name of a timed case, under the policy that counts.
    """
    reason, evidence, log = verdict.reason, _evidence(verdict.evidence), _log(verdict.evidence)
    if verdict.status < Outcome.CORRECT and not _may_be_told(verdict, shown, hidden):
        reason, evidence, log = HIDDEN, (), ""
        if verdict.status is Outcome.LOWERED:
            reason = "built; its numbers could not be checked here"
    speeds = tuple(
        speed
        for case in verdict.cases
        if case.name in shown and not case.held_out
        for speed in _speeds(case, (floors or {}).get(case.name))
    )
    if verdict.status >= Outcome.CORRECT:
        reason = "Right and timed" if speeds else "Right on all cases that were run; not timed"
        if verdict.general is False:
            case = verdict.not_general or ""
            seen = any(name in case for name in shown) and not any(_names(name, case) for name in hidden)
            evidence = (f"not general: {case}" if seen else "not general: fails at another shape",)
        else:
            evidence = ()
        log = ""
    return Told(verdict.status, verdict.stage, reason, evidence, log, speeds)


def _may_be_told(verdict: Verdict, shown: Collection[str], hidden: Collection[str]) -> bool:
    """Whether what a failure says is about the source or a shown case, and names no other."""
    evidence = verdict.evidence or Evidence()
    said = f"{verdict.reason}\n{evidence.log or ''}"
    if any(_names(name, said) for name in hidden):
        return False
    if evidence.case is not None:
        return evidence.case in shown
    failing = [case for case in verdict.cases if case.status < Outcome.CORRECT]
    if any(case.held_out or case.name not in shown for case in failing):
        return False
    return bool(failing) or verdict.stage in _ABOUT_TEXT


def _names(name: str, text: str) -> bool:
    """Whether a text names a case, and not just a longer name that has it inside."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _evidence(evidence: Evidence | None) -> tuple[str, ...]:
    if evidence is None:
        return ()
    lines = [f"case {evidence.case}"] if evidence.case else []
    if evidence.index is not None:
        output = evidence.output or 0
        lines.append(f"worst element: output {output} at {list(evidence.index)}")
        lines.append(f"got {evidence.got!r}, expected {evidence.expected!r}")
    if evidence.error is not None:
        lines.append(f"error {evidence.error:.3g}, allowed {evidence.bound or 0.0:.3g}")
    return tuple(lines)


def _log(evidence: Evidence | None) -> str:
    return (evidence.log or "").strip() if evidence else ""


def _speeds(case: CaseVerdict, floor: float | None) -> tuple[Speed, ...]:
    """Under the declared policy alone: that is what counts."""
    return tuple(
        Speed(case.name, t.policy, t.median, t.baseline, t.baseline_median, t.speedup, t.speedup_ci95, floor)
        for t in case.timings[:1]
    )
