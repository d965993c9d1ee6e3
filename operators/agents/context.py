"""What an agent may know: one frozen value, from which each prompt is made.

Cases that are held out have no place in it. What a verdict says is told by ``told``, which names shown cases
only; of all else it says the stage and that a held-out case failed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from populations.kernel import Kernel
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage, Verdict

HIDDEN = "a held-out case failed"
_ABOUT_TEXT = (Stage.ADMIT, Stage.BUILD, Stage.LOAD)  # stages that look at the source, not at cases


@dataclass(frozen=True)
class ShownCase:
    """A case that agents may see.

    Attributes:
        name: as verdicts name it.
        arguments: inputs and parameters in the entry's order, as "x: float32[256, 4096]".
        outputs: the same for outputs.
        distribution: how inputs are drawn; None: as the problem's own ``get_inputs`` does.
        timed: whether speed counts on it.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    distribution: str | None = None
    timed: bool = False


@dataclass(frozen=True)
class Speed:
    """How fast a kernel was on one timed case that is shown.

    Attributes:
        case, policy: where; "warm" or "cold".
        median: seconds per call.
        baseline, baseline_median: the strongest baseline, and its seconds per call.
        speedup, speedup_ci95: over it.
        floor: seconds below which the hardware can't go; None: not known.
    """

    case: str
    policy: str
    median: float
    baseline: str
    baseline_median: float
    speedup: float
    speedup_ci95: tuple[float, float]
    floor: float | None = None


@dataclass(frozen=True)
class Told:
    """A verdict as agents hear it.

    Attributes:
        status, stage: how far the kernel came, and which stage decided.
        reason: one line.
        evidence: lines on the worst element of a shown case, if there is one.
        log: the compiler's message or the like; "" where there is none.
        speeds: one for each timed case that is shown.
    """

    status: Outcome
    stage: Stage
    reason: str
    evidence: tuple[str, ...] = ()
    log: str = ""
    speeds: tuple[Speed, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether there is something to repair."""
        return self.status < Outcome.LOWERED


@dataclass(frozen=True)
class Parent:
    """A kernel to start from.

    Attributes:
        id: its number in the run.
        kernel: the source.
        operator, rationale: what made it, and why.
        told: what the judge said; None: not judged.
        profile: counters or static facts as lines, e.g. "registers per thread: 96"; "" where there are none.
    """

    id: int
    kernel: Kernel
    operator: str
    rationale: str
    told: Told | None = None
    profile: str = ""


@dataclass(frozen=True)
class Tried:
    """Something that was tried on this lineage, or in this run, and what came of it, in one line."""

    id: int
    operator: str
    rationale: str
    outcome: str


@dataclass(frozen=True)
class Diagnosis:
    """What holds a kernel back: the bottleneck, what shows it, and what to do about it."""

    bottleneck: str
    evidence: tuple[str, ...]
    prescriptions: tuple[str, ...]


@dataclass(frozen=True)
class Lesson:
    """A short lesson, and the ids of the kernels that support it."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class AgentBrief:
    """All that a prompt is made of.

    Attributes:
        language: "cpp" or "triton".
        problem: its name.
        summary: what it computes, in a line.
        reference: the problem file as ``operators.agents.problem.shown`` cuts it: no cases, no hooks.
        signature: the entry: C++ as ``problems NAME --signature`` prints it, or Python's ``def`` line.
        tolerance: the error bound in words.
        facts: of the target, by name, e.g. {"cores": "2"}; they fill the guide.
        cases: those that are shown, the given one first.
        floor: what the hardware allows, in a line; "" where it is not known.
        parents: none for a draft, two for a crossover, else one.
        failures: what was tried on this lineage and failed, oldest first.
        diagnosis: of the first parent.
        lessons: what the run has learned, most useful first.
        direction: what to explore, e.g. an approach, or an empty cell of the archive; "" leaves it open.
        advice: False leaves the guide's advice out; its contract always stays.
    """

    language: str
    problem: str
    summary: str
    reference: str
    signature: str
    tolerance: str
    facts: tuple[tuple[str, str], ...]
    cases: tuple[ShownCase, ...]
    floor: str = ""
    parents: tuple[Parent, ...] = ()
    failures: tuple[Tried, ...] = ()
    diagnosis: Diagnosis | None = None
    lessons: tuple[Lesson, ...] = ()
    direction: str = ""
    advice: bool = True


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
