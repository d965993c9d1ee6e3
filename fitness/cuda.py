"""The GPU target: lowers candidates in sandboxed children, and asks the judge process about their plans."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fitness import native
from fitness.card import Case, ProblemCard
from fitness.exported.client import ExportRun, Subject
from fitness.judging import (
    CALIBRATE_S,
    JUDGE_S,
    OPEN_S,
    Judge,
    KernelEndedJudge,
    passed_on,
    search_cases,
)
from fitness.lowering import source
from fitness.lowering.children import PASSED_ON
from fitness.lowering.client import Lowered, Lowering
from fitness.target import Admission, Alike, Built, DeviceError
from populations.calibration import Calibration
from populations.export_check import Agreement, ExportCheck
from populations.kernel import Kernel
from populations.verdict import Stage, Verdict

GPU_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "CUDA_HOME")


class CudaTarget:
    """The ``cuda`` target with one problem loaded (see fitness.target.Target); ROCm devices too.

    Attributes:
        separate: builds use the CPU alone, so they may go on while the device measures.
        said: what the process that ran the last exported file printed, and why it could not.

    Args:
        problem: name of a built-in problem, or path of a problem file.
        folder: where plans and the judge's log go.
        seed: of the case shapes that a problem draws.
        sandboxed: False only on the user's word: then host code is traced unconfined and verdicts say so.
        entry: name of the host function; None: ``kernel_function`` or ``ModelNew``.

    Raises:
        ProblemError: the problem cannot be loaded or judged.
        DeviceError: no GPU, a missing sandbox feature, or another judge at work.
    """

    separate = True

    def __init__(
        self,
        problem: str,
        *,
        folder: Path,
        seed: int = 0,
        sandboxed: bool = True,
        entry: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._sandboxed = sandboxed
        self._entry = entry
        self._request = {"problem": problem, "seed": seed, "folder": str(folder), "sandboxed": sandboxed}
        self._judge: Judge | None = None
        self.said = ""
        self._card = TypeAdapter(ProblemCard).validate_python(self._open())
        self._lowering: Lowering | None = None
        try:
            facts = self._ask({"do": "device"}, OPEN_S)
            self._lowering = Lowering(
                folder,
                arch=facts["arch"],
                multiprocessors=int(facts["multiprocessors"]),
                sandboxed=sandboxed,
            )
        except BaseException:
            self.close()
            raise

    @property
    def card(self) -> ProblemCard:
        """See Target."""
        return self._card

    def calibrate(self) -> Calibration:
        """See Target."""
        return TypeAdapter(Calibration).validate_python(self._ask({"do": "calibrate"}, CALIBRATE_S))

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See Target."""
        return source.admit(kernel, self._entry)

    def build(self, admission: Admission) -> Built | Verdict:
        """See Target: plans of the cases that a search shows."""
        return self._lowered(admission.kernel, search_cases(self._card))

    def build_unless(self, admission: Admission, known: Callable[[str], bool]) -> Built | Alike | Verdict:
        """See Target."""
        assert self._lowering is not None
        cases = search_cases(self._card)
        lowered = self._lowering.lower_unless(admission.kernel, cases, known, self._entry)
        return self._lowering.built(lowered, cases) if isinstance(lowered, Lowered) else lowered

    def prepare(self, built: Built) -> None:
        """See Target: lowers for all cases; only what the search's cases did not need is compiled."""
        self._lowered(built.kernel, self._card.cases)

    def screen(self, built: Built) -> Verdict:
        """See Target."""
        return self._verdict("screen", built)

    def promote(self, built: Built) -> Verdict:
        """See Target: lowered for all cases, unless ``prepare`` has done it."""
        whole = self._lowered(built.kernel, self._card.cases)
        return self._verdict("promote", whole) if isinstance(whole, Built) else whole

    def check_export(self, text: str, kernel: Kernel, passed: Collection[str]) -> ExportCheck:
        """See Target: the file runs in a sandboxed child, which has the device while the judge waits."""
        whole = self._lowered(kernel, self._card.cases)
        if isinstance(whole, Verdict):
            return ExportCheck(Agreement.UNCHECKED, f"its kernel was not lowered again: {whole.reason}")
        run = ExportRun(
            Subject(text, self._entry, whole.artifact, self._card, frozenset(passed)),
            lambda request: self._ask(request, JUDGE_S),
            self._folder,
            native.environment((*PASSED_ON, *GPU_PASSED_ON)),
            sandboxed=self._sandboxed,
        )
        try:
            return run.check()
        except KernelEndedJudge as end:
            self._judge = None
            return ExportCheck(Agreement.UNCHECKED, f"the plan was run beside it and {end.reason}")
        except DeviceError as why:
            return ExportCheck(Agreement.UNCHECKED, str(why))
        finally:
            self.said = run.said

    def close(self) -> None:
        """See Target."""
        if self._judge is not None:
            self._judge.close()
        if self._lowering is not None:
            self._lowering.close()

    def _lowered(self, kernel: Kernel, cases: tuple[Case, ...]) -> Built | Verdict:
        assert self._lowering is not None
        lowered = self._lowering.lower(kernel, cases, self._entry)
        return lowered if isinstance(lowered, Verdict) else self._lowering.built(lowered, cases)

    def _verdict(self, what: str, built: Built) -> Verdict:
        try:
            verdict = Verdict.from_json(self._ask({"do": what, "kernel": str(built.artifact)}, JUDGE_S))
        except KernelEndedJudge as end:
            self._judge = None
            verdict = Verdict(end.outcome, Stage.SEARCH_GATE, end.reason, isolation="plan")
        return replace(verdict, profile=built.profile)

    def _ask(self, request: dict[str, Any], limit_s: float) -> Any:
        if self._judge is None:
            self._open()
        assert self._judge is not None
        answer = self._judge.ask(request, limit_s)
        if self._judge.ended:
            self._judge.close()
            self._judge = None
        return answer

    def _open(self) -> Any:
        """A judge with the problem loaded: its card."""
        native.require(sandboxed=self._sandboxed)
        judge = Judge(self._folder / "judge.log", environment())
        try:
            card = judge.ask({"do": "open", "target": "cuda", **self._request}, OPEN_S)
        except BaseException:
            judge.close()
            raise
        self._judge = judge
        return card


def environment() -> dict[str, str]:
    """What the judge's process gets: no secrets, compile caches of its own."""
    cache = native.cache_folder()
    return {
        **passed_on(),
        **native.environment(GPU_PASSED_ON),
        "TRITON_CACHE_DIR": str(cache / "triton-judge"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor-gpu"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
