"""Runs an exported file once, in a sandbox with the device, and lays what it did beside its launch plan."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitness import plan as plans
from fitness.card import Case, ProblemCard
from fitness.exported.difference import difference
from fitness.exported.jobs import EXPORT, JOB, SOURCE, ExportJob, Fault, Look, Report
from fitness.exported.process import reported
from fitness.lowering import source as sources
from fitness.target import DeviceError
from populations.export_check import Agreement, ExportCheck
from populations.kernel import Kernel
from populations.text import open_left
from populations.verdict import Verdict

SCRATCH = "export-"
COMPARED_BYTES = 1 << 30  # of a case's arguments; the outputs of a larger one are not compared
Ask = Callable[[dict[str, Any]], Any]  # the judge's answer to a request


@dataclass(frozen=True)
class Subject:
    """What is looked at.

    Attributes:
        text: of the exported file.
        entry: name of its host function or class; None: the usual ones.
        plan: the plan's file.
        card: of the problem.
        passed: names of the cases that the plan passed; others may be refused by the file itself.
    """

    text: str
    entry: str | None
    plan: Path
    card: ProblemCard
    passed: frozenset[str]


class ExportRun:
    """One exported file beside its plan.

    Args:
        subject: what is looked at.
        ask: the judge; it draws inputs, runs the plan, and tells whether numbers hold.
        folder: for scratch folders.
        environment: all that the child gets to see, beside settings of its own.
        sandboxed: False only on the user's word.
        pretended: without a device: launches alone are compared.
    """

    def __init__(
        self,
        subject: Subject,
        ask: Ask,
        folder: Path,
        environment: dict[str, str],
        *,
        sandboxed: bool = True,
        pretended: bool = False,
    ) -> None:
        self._subject, self._ask = subject, ask
        self._folder = folder.absolute()
        self._environment = environment
        self._sandboxed, self._pretended = sandboxed, pretended
        self._plan = plans.read(subject.plan.read_bytes())
        self.said = ""  # what the child printed

    def check(self) -> ExportCheck:
        """Run it, and compare.

        Raises:
            DeviceError: the sandbox or the judge is broken.
        """
        source = sources.read(Kernel(self._subject.text, "triton"), self._subject.entry)
        if isinstance(source, Verdict):
            return self._told(Agreement.DIFFERENT, f"the exported file is refused: {source.reason}")
        for left in self._folder.glob(f"{SCRATCH}*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        with _folder(self._folder) as scratch, _folder(self._folder) as wanted:
            looks, alike = self._looks(scratch, wanted)
            job = ExportJob(source.entry, self._plan.arch, self._plan.choices, looks, self._pretended)
            (scratch / SOURCE).write_text(self._subject.text)
            (scratch / JOB).write_bytes(EXPORT.dump_json(job))
            most = max(sum(spec.nbytes for spec in look.case.outputs) for look in looks)
            ran = reported(scratch, self._environment, output_bytes=most, sandboxed=self._sandboxed)
            report, self.said = ran
            if isinstance(report, Fault):
                agreement = Agreement.UNCHECKED if report.machine else Agreement.DIFFERENT
                return self._told(agreement, report.reason)
            return self._compared(report, looks, scratch, wanted, alike)

    def _looks(self, scratch: Path, wanted: Path) -> tuple[tuple[Look, ...], bool]:
        """The cases with their inputs on the disk, and whether runs of the plan agree on the first."""
        card, passed = self._subject.card, self._subject.passed
        cases = [
            case
            for case in card.cases
            if case.name in passed and not case.held_out and case.name in {c.case for c in self._plan.cases}
        ]
        if not cases:
            raise DeviceError("there is no case on which an exported file could be compared with its plan")
        small = min(cases, key=_nbytes)
        timed = [case for case in cases if case.timed][:1]
        if self._pretended:
            chosen = dict.fromkeys([small.name, *(case.name for case in timed)])
            named = {case.name: case for case in cases}
            return tuple(Look(named[name], _nothing(named[name])) for name in chosen), True
        looks, alike = [], True
        if _nbytes(small) <= COMPARED_BYTES:
            request = {"do": "sample", "kernel": str(self._subject.plan), "case": small.name}
            told = self._ask({**request, "inputs": str(scratch), "outputs": str(wanted)})
            alike = bool(told["alike"])
            looks.append(Look(small, tuple(told["inputs"]), tuple(told["outputs"]), small in timed))
        for case in timed or [small]:
            if case.name not in {look.case.name for look in looks}:
                request = {"do": "sample", "kernel": str(self._subject.plan), "case": case.name}
                told = self._ask({**request, "inputs": str(scratch), "outputs": None})
                looks.append(Look(case, tuple(told["inputs"]), timed=True))
        return tuple(looks), alike

    def _compared(
        self, report: Report, looks: Sequence[Look], scratch: Path, wanted: Path, alike: bool
    ) -> ExportCheck:
        if [seen.case for seen in report.seen] != [look.case.name for look in looks]:
            return self._told(Agreement.DIFFERENT, "the exported file left a report on other cases")
        for seen in report.seen:
            wrong = difference(self._plan, report.kernels, seen) or (
                None if seen.calls else "no call was seen"
            )
            if wrong:
                return self._told(Agreement.DIFFERENT, wrong, launches_equal=False)
        wall = next((seen.wall_us for seen in report.seen if seen.wall_us is not None), None)
        known: dict[str, Any] = {"launches_equal": True, "wall_us": wall}
        first = looks[0]
        if not first.outputs:
            return self._told(Agreement.EQUAL, "the same launches; outputs were not compared", **known)
        known["case"] = first.case.name
        if all(_same(scratch / name, wanted / name) for name in first.outputs):
            return self._told(Agreement.EQUAL, "the same launches and bytes", bytes_equal=True, **known)
        if alike:
            where = f"the same launches on case {first.case.name}, but other output bytes than the plan"
            return self._told(Agreement.DIFFERENT, where, bytes_equal=False, **known)
        held = self._ask({"do": "hold", "folder": str(scratch)})
        known |= {"bytes_equal": False, "within_bound": held["reason"] is None}
        if held["reason"] is not None:
            return self._told(Agreement.DIFFERENT, f"the exported file gives a {held['reason']}", **known)
        return self._told(
            Agreement.EQUAL,
            "the same launches; outputs within the bound, as runs of the plan differ",
            **known,
        )

    def _told(self, agreement: Agreement, reason: str, **known: Any) -> ExportCheck:
        isolation = "process" if self._sandboxed else "weak"
        return ExportCheck(agreement, reason, isolation=isolation, **known)


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A folder for a while."""
    with tempfile.TemporaryDirectory(dir=parent, prefix=SCRATCH, ignore_cleanup_errors=True) as made:
        yield Path(made)


def _nbytes(case: Case) -> int:
    return sum(spec.nbytes for spec in case.arguments)


def _nothing(case: Case) -> tuple[None, ...]:
    return (None,) * (len(case.inputs) + len(case.parameters))


def _same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes; the first may be anything that untrusted code left."""
    try:
        with open_left(one) as file, other.open("rb") as expected:
            while chunk := expected.read(1 << 20):
                if file.read(len(chunk)) != chunk:
                    return False
            return file.read(1) == b""
    except OSError:
        return False
