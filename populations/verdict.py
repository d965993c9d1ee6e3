"""What the judge found out about one kernel: a staged outcome, never a penalty number.

The outcomes are ordered by how far a kernel came::

    rejected < uncompilable < crashed < timed_out < incorrect < lowered < correct < measured

A verdict carries the stage that decided, a reason a person can act on, and the evidence. Absent means
``None``: a kernel that was never timed has ``timing=None``, not an infinite time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from populations.profile import KernelProfile

POLICIES = ("warm", "cold")  # of timing: arguments in the last-level cache, or rotated through memory


class Outcome(StrEnum):
    """How far a kernel came; members compare by that order, not alphabetically."""

    REJECTED = "rejected"  # a rule refused it before anything was built
    UNCOMPILABLE = "uncompilable"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    INCORRECT = "incorrect"
    LOWERED = "lowered"  # built, numbers not checked: never selected
    CORRECT = "correct"  # numbers checked, no time that counts
    MEASURED = "measured"

    @property
    def rank(self) -> int:
        """Position in the order, 0 for rejected."""
        return list(Outcome).index(self)

    def __lt__(self, other: object) -> bool:
        return self.rank < other.rank if isinstance(other, Outcome) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.rank <= other.rank if isinstance(other, Outcome) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.rank > other.rank if isinstance(other, Outcome) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.rank >= other.rank if isinstance(other, Outcome) else NotImplemented


class Stage(StrEnum):
    """Where the verdict was decided, in the order in which a kernel meets them."""

    ADMIT = "admit"  # size, parse, structural rules
    BUILD = "build"  # the sandboxed compiler
    LOAD = "load"  # what the built library may contain
    SMOKE = "smoke"  # two small cases
    SEARCH_GATE = "search_gate"  # visible shapes, several distributions, a few held-out shapes
    PROMOTION_GATE = "promotion_gate"  # all held-out shapes, both poisons
    TIMING = "timing"  # a timed launch is a checked launch, so it can fail as well


@dataclass(frozen=True)
class Evidence:
    """The worst element, or what the compiler or the system said.

    Attributes:
        case: name of the problem case.
        output: which output, counted from 0.
        index: coordinates of the worst element.
        got, expected: its values.
        error, bound: absolute error and what was allowed there.
        log: compiler message or the like, shortened.
    """

    case: str | None = None
    output: int | None = None
    index: tuple[int, ...] | None = None
    got: float | None = None
    expected: float | None = None
    error: float | None = None
    bound: float | None = None
    log: str | None = None


@dataclass(frozen=True)
class Timing:
    """Speed of one kernel on one case, beside the strongest baseline.

    Times are seconds per call. All samples are kept: ``samples`` and ``baseline_samples`` hold one lower
    quartile of blocks per round, in the order measured.

    Attributes:
        policy: "warm" (arguments in the last-level cache) or "cold" (rotated through memory).
        median: seconds per call, median over rounds.
        ci95: 95 percent interval of that median (bootstrap over rounds).
        baseline: name of the baseline it was paired with, e.g. "torch.compile".
        baseline_median: its seconds per call in the same rounds.
        speedup: median over rounds of baseline / kernel.
        speedup_ci95: bootstrap interval of the speed-up.
        fitness: one-sided 95 percent lower bound of log speed-up; None below the rounds that a claim needs.
        noise_floor: half-width of the A/A interval of log speed-up on this case.
        rank: what selection compares: fitness where there is one, else median log speed-up less two floors.
        gbps: compulsory bytes over median time, 1e9 bytes per second.
        tflops: FLOPs over median time, 1e12 per second; None where the problem declares no FLOPs.
    """

    policy: str
    median: float
    ci95: tuple[float, float]
    baseline: str
    baseline_median: float
    speedup: float
    speedup_ci95: tuple[float, float]
    fitness: float | None
    noise_floor: float
    rank: float
    gbps: float
    tflops: float | None
    samples: tuple[float, ...]
    baseline_samples: tuple[float, ...]


@dataclass(frozen=True)
class CaseVerdict:
    """What one case said. ``max_error`` is in units of the bound: above 1 is wrong."""

    name: str
    held_out: bool
    derived: bool
    status: Outcome
    reason: str | None = None
    max_error: float | None = None
    timings: tuple[Timing, ...] = ()  # declared policy first


@dataclass(frozen=True)
class Verdict:
    """The whole answer about one kernel on one problem and device.

    Attributes:
        status: how far it came.
        stage: the stage that decided.
        reason: one line a person can act on.
        general: True where all derived cases pass too, False with ``not_general`` naming the case, else None.
        isolation: "process" (sandboxed runner), or "weak" where the system lacks a feature.
        numerics: "device", "interpreter" or "none".
        speedup: geometric mean over timed cases of the speed-up under the declared policy.
        fitness: lower bound of log speed-up, mean over timed cases; None below the rounds that a claim needs.
        rank: what selection compares (see Timing.rank); None where nothing was timed.
        verifier: hash of the verifier that judged, so that a stricter one can judge again.
        key: the secret the inputs were drawn with, to replay a failure.
        device_s: seconds of device time this verdict took.
        clocked_s: seconds of it in timed blocks; the rest is checking and drawing data.
        telemetry: clocks, power and temperature right after the timing, where it was one for a claim.
        profile: what the binaries of a Triton kernel are made of, one entry a device function.
    """

    status: Outcome
    stage: Stage
    reason: str
    evidence: Evidence | None = None
    cases: tuple[CaseVerdict, ...] = ()
    general: bool | None = None
    not_general: str | None = None
    numerics: str = "device"
    isolation: str = "process"
    speedup: float | None = None
    fitness: float | None = None
    rank: float | None = None
    verifier: str = ""
    key: str | None = None
    device_s: float = 0.0
    clocked_s: float = 0.0
    notes: tuple[str, ...] = field(default=())
    telemetry: dict[str, str] = field(default_factory=dict)
    profile: tuple[KernelProfile, ...] = ()

    @property
    def timed(self) -> bool:
        """Whether any case was timed."""
        return any(case.timings for case in self.cases)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data, with "NaN" and "Infinity" as text; ``Verdict.from_json`` reads it back."""
        return from_json(to_json(self, inf_nan_mode="strings"))  # type: ignore[no-any-return]

    @staticmethod
    def from_json(data: object) -> Verdict:
        """The verdict that ``to_json`` wrote.

        Raises:
            pydantic.ValidationError: the data is not a verdict.
        """
        return _adapter().validate_python(data)


@cache
def _adapter() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)
