"""The events a run consists of. State is a fold over them, so nothing else needs to be saved.

Every *ask* of the loop ends in exactly one ``Proposed`` or ``Stillborn``; every ``Proposed`` in exactly one
``Judged``, if need be after a resume. A kernel is counted as an evaluation when it was judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic_core import to_json

from populations.calibration import Calibration
from populations.export_check import ExportCheck
from populations.learned import Diagnosis, Lesson
from populations.verdict import Verdict

FORMAT = 1  # of the run folder; a reader refuses a larger one


@dataclass(frozen=True)
class Started:
    """The run was made; everything that decides it, so that it can be resumed and replayed."""

    problem: str
    target: str
    seed: int
    settings: dict[str, Any]
    card: dict[str, Any]
    format: int = FORMAT


@dataclass(frozen=True)
class Calibrated:
    """The device measured its baselines, noise and floor."""

    calibration: Calibration


@dataclass(frozen=True)
class Proposed:
    """An operator made a child that was admitted and is not a duplicate.

    ``normal_sha`` is the hash of the source without comments and layout, ``artifact_sha`` that of the machine
    code (None: it did not build), ``timed_sha`` that of its work on the timed cases alone (None: there is no
    telling); duplicates are found by them.
    """

    ask: int
    id: int
    source_sha: str
    normal_sha: str
    language: str
    parents: tuple[int, ...]
    operator: str
    rationale: str
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    artifact_sha: str | None = None
    timed_sha: str | None = None
    model: str | None = None  # the operator spoke to; what it cost is told by its calls
    call: str | None = None  # whose answer it is; a proposal from elsewhere has such a name in any case


@dataclass(frozen=True)
class Stillborn:
    """An ask without an evaluation: no place to apply the operator, a duplicate, or refused at admission.

    Of a child that was built and does the work of an earlier kernel, the ``twin``, the hash of its source is
    kept, and its tuning numbers: it is not built again, and the numbers are not tried again. ``refused``:
    there is a source, and admission refused it.
    """

    ask: int
    operator: str
    parents: tuple[int, ...]
    reason: str
    normal_sha: str | None = None
    twin: int | None = None
    numbers: tuple[int, ...] = ()
    model: str | None = None
    call: str | None = None
    refused: bool = False


@dataclass(frozen=True)
class Judged:
    """The first verdict on a kernel; this is what counts as an evaluation."""

    id: int
    verdict: Verdict


@dataclass(frozen=True)
class Promoted:
    """A champion measured again with the rounds that a claim needs; the new verdict replaces the old."""

    id: int
    verdict: Verdict


@dataclass(frozen=True)
class Exported:
    """A finalist's exported file was run beside its plan; where it differs, an incorrect verdict follows."""

    id: int
    check: ExportCheck


@dataclass(frozen=True)
class Reserved:
    """A call of a model is about to be made, and may cost so much at most; logged before it is made.

    ``call`` is its name, unique in a run; ``ask`` the next ask when it was made (the ask that finds its
    answer uses it); ``again`` an earlier call whose outcome nobody knows and that this one repeats;
    ``mends`` one whose source was refused, as its author now hears. Tokens and USD are those of all its
    attempts. ``request`` is the hash of what is sent, as RUN/calls keeps it. ``parents`` are the kernels that
    it is about. ``lessons`` are the numbers of those that it tells, in the order in which the run learned
    them, ``untold`` of those that a lot kept back.
    """

    call: str
    ask: int
    operator: str
    model: str
    tokens: int
    usd: float = 0.0
    again: str | None = None
    parents: tuple[int, ...] = ()
    request: str | None = None
    lessons: tuple[int, ...] = ()
    untold: tuple[int, ...] = ()
    mends: str | None = None


class Certainty(StrEnum):
    """How the cost of a call is known."""

    COUNTED = "counted"  # by the server
    ESTIMATED = "estimated"  # the attempt broke; from what was sent and came back
    UNKNOWN = "unknown"  # the process ended while the call was open: charged at its reservation


@dataclass(frozen=True)
class Settled:
    """A call ended and cost so much; its reservation is lifted.

    ``answer`` is the hash of what came back, as RUN/calls keeps it, None where nobody knows; ``failure`` the
    kind of error that came instead of an answer.
    """

    call: str
    tokens: int
    usd: float = 0.0
    seconds: float = 0.0
    certainty: Certainty = Certainty.COUNTED
    answer: str | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Diagnosed:
    """What a call said that holds a kernel back; None: nothing that can be used, and why."""

    call: str
    id: int
    diagnosis: Diagnosis | None
    reason: str = ""


@dataclass(frozen=True)
class Reflected:
    """The lessons that a call drew, in place of those before; None: none that can be used, and why."""

    call: str
    lessons: tuple[Lesson, ...] | None
    reason: str = ""


@dataclass(frozen=True)
class Resumed:
    """A new process took the run over."""

    at_evaluations: int


@dataclass(frozen=True)
class Stopped:
    """The loop ended: "evaluations", "minutes", "usd", "tokens", "interrupted", "exhausted", "proposals"."""

    why: str


Event = (
    Started
    | Calibrated
    | Proposed
    | Stillborn
    | Judged
    | Promoted
    | Exported
    | Reserved
    | Settled
    | Diagnosed
    | Reflected
    | Resumed
    | Stopped
)
KINDS: dict[str, type[Event]] = {cls.__name__.lower(): cls for cls in get_args(Event)}


def kind_of(event: Event) -> str:
    """The name under which the log stores an event."""
    return type(event).__name__.lower()


def dump(event: Event) -> bytes:
    """The event as JSON."""
    return to_json(event, inf_nan_mode="strings")  # "got: nan" is evidence, and JSON has no literal for it


def load(kind: str, body: str | bytes) -> Event:
    """The event that ``dump`` wrote.

    Raises:
        KeyError: a kind that this version does not know.
        pydantic.ValidationError: a body that is not of this kind.
    """
    return _adapter(kind).validate_json(body)


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(KINDS[kind])
