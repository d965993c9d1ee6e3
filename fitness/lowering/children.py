"""The client's end of the zygote: jobs from several threads at once, each in a scratch folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from fitness import native
from fitness.lowering.confinement import BROKEN, TIMED_OUT, Limits
from fitness.lowering.jobs import ANSWER_BYTES, answer_file, job_file
from fitness.target import DeviceError

READY_S = 180.0
PATIENCE_S = 120.0  # beyond a child's own limit
LOG_BYTES = 4096
CPU_SIGNALS = (128 + 9, 128 + 24)
PASSED_ON = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH")


class ChildError(Exception):
    """A child did not answer: "timed_out" or "crashed", and why."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Children:
    """Starts the zygote and asks it.

    Args:
        log: file for what the zygote says.
        arch: what kernels are lowered for.
        sandboxed: False only on the user's word.
        limits: of one child.

    Raises:
        DeviceError: no gcc, or torch and Triton do not start.
    """

    def __init__(self, log: Path, *, arch: str, sandboxed: bool, limits: Limits) -> None:
        self._limits = limits
        self._log = log
        order = [sys.executable, "-m", "fitness.lowering.zygote", "--library", str(native.library("enter")),
                 "--arch", arch, "--wall", str(limits.wall), "--cpu", str(limits.cpu)]  # fmt: skip
        if not sandboxed:
            order.append("--unsandboxed")
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                order,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(log.parent),
                start_new_session=True,  # a Ctrl-C in the terminal is the coordinator's to handle
            )
        self._changed = threading.Condition()
        self._ready = self._dead = False
        self._status: dict[int, int] = {}
        self._next = 0
        self._reader = threading.Thread(target=self._read, name="lowering", daemon=True)
        self._reader.start()

    def ask(self, do: str, scratch: Path, job: bytes) -> bytes:
        """The child's answer to one job.

        Raises:
            ChildError: it died, took too long, or left no answer.
            DeviceError: the zygote or the sandbox is broken.
        """
        (scratch / job_file).write_bytes(job)
        status = self._run(do, scratch)
        if status == 0:
            answer = read_small(scratch / answer_file, ANSWER_BYTES)
            if not answer:
                raise ChildError("rejected", "the host code ended the process")
            return answer
        what = "tracing the host function" if do == "trace" else "compiling"
        if status == TIMED_OUT:
            raise ChildError("timed_out", f"{what} took longer than {self._limits.wall:g} s")
        said = read_small(scratch / "log.txt", LOG_BYTES).decode(errors="replace").strip()
        if status == BROKEN:
            raise DeviceError(f"the lowering sandbox failed: {said[-300:]}")
        if status in CPU_SIGNALS:
            raise ChildError("timed_out", f"{what} used more than {self._limits.cpu} s of processor time")
        last = said.splitlines()[-1] if said else f"status {status}"
        if "MemoryError" in last or "bad_alloc" in last:
            last = f"more than {self._limits.memory >> 30} GiB of memory"
        raise ChildError("crashed", f"{what} failed: {last[:300]}")

    def close(self) -> None:
        """End the zygote and all its children."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=5)

    def _run(self, do: str, scratch: Path) -> int:
        assert self._process.stdin is not None
        with self._changed:
            if not self._changed.wait_for(lambda: self._ready or self._dead, READY_S) or self._dead:
                raise DeviceError(f"torch and Triton do not start for lowering (log: {self._log})")
            number = self._next = self._next + 1
            line = json.dumps({"id": number, "do": do, "scratch": str(scratch)}) + "\n"
            try:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                raise DeviceError(f"the lowering process has ended (log: {self._log})") from None
            limit = self._limits.wall + PATIENCE_S
            if not self._changed.wait_for(lambda: number in self._status or self._dead, limit):
                raise DeviceError(f"the lowering process does not answer (log: {self._log})")
            if number not in self._status:
                raise DeviceError(f"the lowering process has died (log: {self._log})")
            return self._status.pop(number)

    def _read(self) -> None:
        """The only reader of the zygote's words."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                if line == b"ready\n":
                    self._ready = True
                else:
                    number, status = line.split()
                    self._status[int(number)] = int(status)
                self._changed.notify_all()
        with self._changed:
            self._dead = True
            self._changed.notify_all()
        self._process.stdout.close()


def read_small(path: Path, most: int) -> bytes:
    """At most ``most`` bytes of a regular file that untrusted code may have written; no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**kept, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
