"""What an agent may know: one frozen value, from which each prompt is made.

Cases that are held out have no place in it: a verdict comes in through ``operators.agents.hearing.told``, the
problem file through ``operators.agents.problem.shown``.
"""

from __future__ import annotations

from dataclasses import dataclass

from populations.kernel import Kernel
from populations.learned import Diagnosis, Lesson
from populations.verdict import Outcome, Stage


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
        diagnosis: what holds it back; None: nobody was asked.
    """

    id: int
    kernel: Kernel
    operator: str
    rationale: str
    told: Told | None = None
    profile: str = ""
    diagnosis: Diagnosis | None = None


@dataclass(frozen=True)
class Tried:
    """Something that was tried on this lineage, or in this run, and what came of it, in one line.

    Attributes:
        id: of the kernel that was born; 0: none was.
    """

    id: int
    operator: str
    rationale: str
    outcome: str


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
        lessons: what the run has learned, most useful first.
        direction: what to explore, e.g. an approach, or an empty cell of the archive; "" leaves it open.
        advice: False leaves the guide's advice out; its contract always stays.
        entry: name of the function that a kernel must define.
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
    lessons: tuple[Lesson, ...] = ()
    direction: str = ""
    advice: bool = True
    entry: str = "kernel_function"
