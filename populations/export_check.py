"""What came of running a kernel's exported file beside its launch plan: a value, logged for a finalist."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json


class Agreement(StrEnum):
    """Whether an exported file does what its plan did."""

    EQUAL = "equal"  # the same launches, and the same bytes or numbers as right as the plan's
    DIFFERENT = "different"  # what was measured is not what is exported
    UNCHECKED = "unchecked"  # the machine did not let it be seen; no kernel is to blame


@dataclass(frozen=True)
class ExportCheck:
    """One exported file, run on the device in a sandbox, beside the plan that was measured.

    Attributes:
        agreement: the answer.
        reason: one line a person can act on.
        launches_equal: binaries, grids, arguments, fills and copies are the plan's; None: not seen.
        bytes_equal: the outputs are the plan's bit for bit; None: not compared.
        within_bound: whether outputs hold where runs of the plan itself differ; None: they do not differ.
        case: name of the case whose outputs were compared; None: none were.
        wall_us: wall time of one call of the entry on the timed case, microseconds, launch overhead included;
            by the clock of the process that ran the file, so it is reported and never scored.
        isolation: "process" (sandboxed), or "weak".
    """

    agreement: Agreement
    reason: str
    launches_equal: bool | None = None
    bytes_equal: bool | None = None
    within_bound: bool | None = None
    case: str | None = None
    wall_us: float | None = None
    isolation: str = "process"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return from_json(to_json(self))  # type: ignore[no-any-return]

    @staticmethod
    def from_json(data: object) -> ExportCheck:
        """The check that ``to_json`` wrote.

        Raises:
            pydantic.ValidationError: the data is not one.
        """
        return _adapter().validate_python(data)


@cache
def _adapter() -> TypeAdapter[ExportCheck]:
    return TypeAdapter(ExportCheck)
