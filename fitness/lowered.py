"""Triton kernels without a GPU: lowered for a named architecture, numbers by the interpreter, no times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fitness import native
from fitness.card import Case, ProblemCard
from fitness.judging import CALIBRATE_S, JUDGE_S, OPEN_S, Judge, passed_on, search_cases
from fitness.lowering import source
from fitness.lowering.client import Lowering
from fitness.target import Admission, Built
from populations.calibration import Calibration
from populations.kernel import Kernel
from populations.verdict import Verdict


class LoweredTarget:
    """Where there is no accelerator and the language is Triton (see fitness.target.Target).

    Its verdicts are ``correct`` at best: numbers checked by Triton's interpreter on the cases that it can
    run, nothing timed. What it cannot check is ``lowered``, and the reason says why.

    Args:
        problem: name of a built-in problem, or path of a problem file.
        folder: where plans and logs go.
        seed: of the case shapes that a problem draws.
        sandboxed: False only on the user's word: then candidates run unconfined and verdicts say so.
        arch: what is lowered for.
        entry: name of the host function; None: ``kernel_function`` or ``ModelNew``.

    Raises:
        ProblemError: the problem cannot be loaded or judged.
        DeviceError: no Triton, an unknown architecture, no compiler, or a missing sandbox feature.
    """

    def __init__(
        self,
        problem: str,
        *,
        folder: Path,
        seed: int = 0,
        sandboxed: bool = True,
        arch: str = "sm_90",
        entry: str | None = None,
    ) -> None:
        native.require(sandboxed=sandboxed)
        folder.mkdir(parents=True, exist_ok=True)
        self._entry = entry
        self._isolation = "process" if sandboxed else "weak"
        self._lowering = Lowering(folder, arch=arch, sandboxed=sandboxed)
        self._judge: Judge | None = None
        try:
            self._judge = Judge(folder / "judge.log", passed_on())
            request = {"problem": problem, "seed": seed, "folder": str(folder), "sandboxed": sandboxed}
            card = self._ask({"do": "open", "target": "interpreter", **request}, OPEN_S)
            self._card = TypeAdapter(ProblemCard).validate_python(card)
        except BaseException:
            self.close()
            raise

    @property
    def card(self) -> ProblemCard:
        """See Target."""
        return self._card

    def calibrate(self) -> Calibration:
        """See Target: empty, nothing is timed."""
        return TypeAdapter(Calibration).validate_python(self._ask({"do": "calibrate"}, CALIBRATE_S))

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See Target."""
        found = source.admit(kernel, self._entry)
        return self._unchecked(found) if isinstance(found, Verdict) else found

    def build(self, admission: Admission) -> Built | Verdict:
        """See Target: plans of the cases that a search shows."""
        return self._lowered(admission.kernel, search_cases(self._card))

    def screen(self, built: Built) -> Verdict:
        """See Target: smoke and search gate by the interpreter."""
        return self._verdict("screen", built)

    def promote(self, built: Built) -> Verdict:
        """See Target: lowered anew, and checked on all cases."""
        whole = self._lowered(built.kernel, self._card.cases)
        return self._verdict("promote", whole) if isinstance(whole, Built) else whole

    def close(self) -> None:
        """See Target."""
        if self._judge is not None:
            self._judge.close()
        self._lowering.close()

    def _lowered(self, kernel: Kernel, cases: tuple[Case, ...]) -> Built | Verdict:
        lowered = self._lowering.lower(kernel, cases, self._entry)
        if isinstance(lowered, Verdict):
            return self._unchecked(lowered)
        return self._lowering.built(lowered, cases)

    def _unchecked(self, verdict: Verdict) -> Verdict:
        """A verdict of the lowering: no number was looked at."""
        return replace(verdict, numerics="none", isolation=self._isolation)

    def _verdict(self, what: str, built: Built) -> Verdict:
        verdict = Verdict.from_json(self._ask({"do": what, "kernel": str(built.artifact)}, JUDGE_S))
        return replace(verdict, profile=built.profile)

    def _ask(self, request: dict[str, Any], limit_s: float) -> Any:
        assert self._judge is not None
        return self._judge.ask(request, limit_s)
