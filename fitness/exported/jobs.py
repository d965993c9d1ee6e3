"""What the client asks the child that runs an exported file, and what it may answer: checked data."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as checked

from fitness.card import Case
from fitness.plan import STRICT, CasePlan

SOURCE, JOB, ANSWER, LOG = "kernel.py", "job.json", "answer.json", "log.txt"
BEGUN = "begun"  # an empty file: from here on, what goes wrong is the exported file's doing
ANSWER_BYTES = 16 << 20


@checked(frozen=True, config=STRICT)
class Look:
    """Call the entry on a case.

    Attributes:
        case: the case.
        inputs: a file of the folder for each input and parameter; None: any floats will do.
        outputs: files that the last call's outputs are written to; empty: they are not asked for.
        timed: whether to tell the wall time of a call.
    """

    case: Case
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...] = ()
    timed: bool = False


@checked(frozen=True, config=STRICT)
class ExportJob:
    """Run ``kernel.py``.

    Attributes:
        entry: name of its host function or class.
        arch: what the plan was lowered for.
        choices: the configuration of each autotuned function that was measured.
        looks: the cases.
        pretended: without a device: kernels are compiled and launches written down, nothing is computed.
    """

    entry: str
    arch: str
    choices: dict[str, dict[str, Any]]
    looks: tuple[Look, ...]
    pretended: bool = False


@checked(frozen=True, config=STRICT)
class Compiled:
    """A kernel that the file compiled: its name and the hash of its device binary."""

    name: str
    sha: str


@checked(frozen=True, config=STRICT)
class Seen:
    """The recorded calls on one case, and microseconds of wall time of one call where that was asked for."""

    case: str
    calls: tuple[CasePlan, ...]
    wall_us: float | None


@checked(frozen=True, config=STRICT)
class Report:
    """What the file did. ``kernels``: that launches name by number."""

    kernels: tuple[Compiled, ...]
    seen: tuple[Seen, ...]


@checked(frozen=True, config=STRICT)
class Fault:
    """Why there is no report. ``machine``: the file is not to blame."""

    reason: str
    machine: bool = False


EXPORT: TypeAdapter[ExportJob] = TypeAdapter(ExportJob)
EXPORT_ANSWER: TypeAdapter[Report | Fault] = TypeAdapter(Report | Fault)
