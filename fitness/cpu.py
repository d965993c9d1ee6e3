"""The CPU target: builds candidates in a sandbox here, and asks the judge process about them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fitness import cpp, machine, native
from fitness.card import ProblemCard
from fitness.target import Admission, Built, DeviceError, ProblemError
from populations.calibration import Calibration
from populations.kernel import Kernel
from populations.verdict import Verdict

OPEN_S, CALIBRATE_S, JUDGE_S = 180.0, 900.0, 600.0
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "PYTHONPATH", "VIRTUAL_ENV")


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
        missing = native.features().missing
        if sandboxed and missing:
            raise DeviceError(
                f"this kernel lacks {', '.join(missing)}, which the sandbox needs; "
                "--unsandboxed runs candidates unconfined (verdicts then say isolation: weak)"
            )
        self._folder = folder
        self._sandboxed = sandboxed
        folder.mkdir(parents=True, exist_ok=True)
        cpp.sweep(folder)
        self._judge = _Judge(folder / "judge.log")
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
        return Verdict.from_json(self._judge.ask({"do": what, "library": str(built.artifact)}, JUDGE_S))

    def close(self) -> None:
        """See Target."""
        self._judge.close()


class _Judge:
    """The judge process and its line protocol."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fitness.judge"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(),
                start_new_session=True,  # a Ctrl-C in the terminal is the coordinator's to handle
            )
        self._pending = b""

    def ask(self, request: dict[str, Any], limit_s: float) -> Any:
        """The judge's answer.

        Raises:
            ProblemError, DeviceError: what the judge said, or that it died or did not answer in time.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        reply = json.loads(self._line(time.monotonic() + limit_s, limit_s))
        if "error" in reply:
            kind = ProblemError if reply["error"] == "ProblemError" else DeviceError
            raise kind(reply["message"])
        return reply["answer"]

    def _line(self, deadline: float, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.close()
                raise DeviceError(f"the judge did not answer within {limit_s:.0f} s (its log: {self._log})")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise self._died()
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _died(self) -> DeviceError:
        self.close()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        last = lines[-1] if lines else "no message"
        return DeviceError(
            f"the judge ended with status {self._process.returncode}: {last} (its log: {self._log})"
        )

    def close(self) -> None:
        """End the process and its children."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # a request that the dead judge never read


def environment() -> dict[str, str]:
    """What the judge's process gets: no secrets, pinned allocator and threads, a compile cache of its own."""
    cores = str(machine.cores())
    cache = native.cache_folder()
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
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
