"""The CPU target: builds candidates in a sandbox here, and asks the judge process about them."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from fitness import cpp, machine, native
from fitness.card import ProblemCard
from fitness.judging import CALIBRATE_S, JUDGE_S, OPEN_S, Judge, passed_on
from fitness.target import Admission, Built
from populations.calibration import Calibration
from populations.kernel import Kernel
from populations.verdict import Verdict


class CpuTarget:
    """The ``cpu`` target with one problem loaded (see fitness.target.Target).

    Args:
        problem: name of a built-in problem, or path of a problem file.
        folder: where libraries and the judge's log go.
        seed: of the case shapes that a problem draws.
        sandboxed: False only on the user's word: then kernels run unconfined and verdicts say so.

    Raises:
        ProblemError: the problem cannot be loaded or judged.
        DeviceError: no compiler, a missing sandbox feature, or another judge at work.
    """

    def __init__(self, problem: str, *, folder: Path, seed: int = 0, sandboxed: bool = True) -> None:
        native.require(sandboxed=sandboxed)
        self._folder = folder
        self._sandboxed = sandboxed
        folder.mkdir(parents=True, exist_ok=True)
        cpp.sweep(folder)
        self._judge = Judge(folder / "judge.log", environment())
        try:
            request = {"problem": problem, "seed": seed, "folder": str(folder), "sandboxed": sandboxed}
            card = self._judge.ask({"do": "open", **request}, OPEN_S)
        except BaseException:
            self._judge.close()
            raise
        self._card = TypeAdapter(ProblemCard).validate_python(card)

    @property
    def card(self) -> ProblemCard:
        """See Target."""
        return self._card

    def calibrate(self) -> Calibration:
        """See Target."""
        return TypeAdapter(Calibration).validate_python(self._judge.ask({"do": "calibrate"}, CALIBRATE_S))

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See Target."""
        return cpp.admit(kernel, self._card)

    def build(self, admission: Admission) -> Built | Verdict:
        """See Target."""
        return cpp.build(admission, self._folder, sandboxed=self._sandboxed)

    def screen(self, built: Built) -> Verdict:
        """See Target."""
        return self._verdict("screen", built)

    def promote(self, built: Built) -> Verdict:
        """See Target."""
        return self._verdict("promote", built)

    def _verdict(self, what: str, built: Built) -> Verdict:
        return Verdict.from_json(self._judge.ask({"do": what, "kernel": str(built.artifact)}, JUDGE_S))

    def close(self) -> None:
        """See Target."""
        self._judge.close()


def environment() -> dict[str, str]:
    """What the judge's process gets: no secrets, pinned allocator and threads, a compile cache of its own."""
    cores = str(machine.cores())
    cache = native.cache_folder()
    return {
        **passed_on(),
        "OMP_NUM_THREADS": cores,
        # Idle workers spin for 0.3 ms instead of 5: they are asleep before a kernel's block begins.
        "GOMP_SPINCOUNT": "20000",
        # Fresh outputs would page-fault in every call (10x slower): keep freed memory, never mmap it.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
        "MALLOC_TOP_PAD_": str(64 << 20),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / f"inductor-{cores}"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
