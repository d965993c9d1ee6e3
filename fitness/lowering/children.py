"""The client's end of the zygotes: jobs from several threads at once, each in a scratch folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
WHAT = {"trace": "tracing the host function", "compile": "compiling"}


class ChildError(Exception):
    """A child did not answer: "timed_out" or "crashed", and why."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Tally:
    """How many children did one kind of job, and for how many seconds of wall time in sum."""

    children: int = 0
    seconds: float = 0.0


class Children:
    """Starts the two zygotes and asks them.

    Attributes:
        tally: of the jobs done so far, by what they do.

    Args:
        log: file for what the zygotes say.
        arch: what kernels are lowered for.
        sandboxed: False only on the user's word.
        limits: of one child.
        most: children at work at once, whoever asks for them.
        multiprocessors: of the card; None: of a common one of the architecture.

    Raises:
        DeviceError: no gcc, or torch and Triton do not start.
    """

    def __init__(
        self,
        log: Path,
        *,
        arch: str,
        sandboxed: bool,
        limits: Limits,
        most: int,
        multiprocessors: int | None = None,
    ) -> None:
        self.tally = {do: Tally() for do in WHAT}
        self._limits = limits
        self._log = log
        self._changed = threading.Condition()
        self._free = most
        self._dead = False
        self._ready: set[str] = set()
        self._status: dict[int, int] = {}  # of children that have ended and were not yet asked for
        self._next = 0
        options = ["--library", str(native.library("enter")), "--arch", arch,
                   "--wall", str(limits.wall), "--cpu", str(limits.cpu)]  # fmt: skip
        if multiprocessors is not None:
            options += ["--multiprocessors", str(multiprocessors)]
        if not sandboxed:
            options.append("--unsandboxed")
        self._zygotes = {do: self._start(do, options) for do in WHAT}
        self._readers = [
            threading.Thread(target=self._read, args=(do,), name=f"lowering-{do}", daemon=True) for do in WHAT
        ]
        for reader in self._readers:
            reader.start()

    def ask(self, do: str, scratch: Path, job: bytes) -> bytes:
        """The child's answer to one job.

        Raises:
            ChildError: it died, took too long, or left no answer.
            DeviceError: a zygote or the sandbox is broken.
        """
        (answer,) = self.ask_all(do, [(scratch, job)], lambda _: False)
        if isinstance(answer, ChildError):
            raise answer
        assert answer is not None  # the first job is always begun
        return answer

    def ask_all(
        self, do: str, jobs: Sequence[tuple[Path, bytes]], enough: Callable[[bytes], bool]
    ) -> list[bytes | ChildError | None]:
        """Answers to jobs done side by side, as far as there are children free.

        Jobs are begun in order. After a child that failed, or an answer that is ``enough``, no more are
        begun; their answers are None.

        Args:
            do: "trace" or "compile".
            jobs: scratch folder and text of each.
            enough: whether an answer makes the others needless.

        Raises:
            DeviceError: a zygote or the sandbox is broken.
        """
        for scratch, job in jobs:
            (scratch / job_file).write_bytes(job)
        waiting = deque(range(len(jobs)))
        running: dict[int, int] = {}  # number of the order → index of the job
        start: dict[int, float] = {}
        answers: list[bytes | ChildError | None] = [None] * len(jobs)
        while waiting or running:
            begun, ended = self._next_events(running, more=bool(waiting))
            if begun:
                index = waiting.popleft()
                number = self._begin(do, jobs[index][0])
                running[number], start[number] = index, time.monotonic()
            for number, status in ended:
                index = running.pop(number)
                self._count(do, time.monotonic() - start[number])
                answers[index] = answer = self._answer(do, jobs[index][0], status)
                if isinstance(answer, ChildError) or enough(answer):
                    waiting.clear()
        return answers

    def close(self) -> None:
        """End the zygotes and all their children."""
        for zygote in self._zygotes.values():
            assert zygote.stdin is not None
            zygote.stdin.close()
        for zygote in self._zygotes.values():
            try:
                zygote.wait(timeout=5)
            except subprocess.TimeoutExpired:
                zygote.kill()
                zygote.wait()
        for reader in self._readers:
            reader.join(timeout=5)

    def _start(self, do: str, options: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as stderr:
            return subprocess.Popen(
                [sys.executable, "-m", "fitness.lowering.zygote", do, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(self._log.parent),
                start_new_session=True,  # a Ctrl-C in the terminal is the coordinator's to handle
            )

    def _next_events(self, running: dict[int, int], *, more: bool) -> tuple[bool, list[tuple[int, int]]]:
        """Whether another child may be begun (it has a place then), and which of ``running`` have ended."""
        limit = self._limits.wall + PATIENCE_S if running else None  # a place comes free in the end
        with self._changed:
            heard = self._changed.wait_for(
                lambda: self._dead or self._status.keys() & running.keys() or (more and self._free > 0), limit
            )
            if self._dead:
                raise self._gone()
            if not heard:
                self._dead = True
                self._changed.notify_all()
                raise DeviceError(f"a lowering process does not answer (log: {self._log})")
            ended = [(number, self._status.pop(number)) for number in self._status.keys() & running.keys()]
            begun = more and not ended and self._free > 0
            self._free -= begun
            return begun, ended

    def _begin(self, do: str, scratch: Path) -> int:
        """Order a child; the number of the order."""
        zygote = self._zygotes[do]
        assert zygote.stdin is not None
        with self._changed:
            if not self._changed.wait_for(lambda: do in self._ready or self._dead, READY_S) or self._dead:
                raise self._gone()
            number = self._next = self._next + 1
            line = json.dumps({"id": number, "scratch": str(scratch)}) + "\n"
            try:
                zygote.stdin.write(line.encode())
                zygote.stdin.flush()
            except (BrokenPipeError, ValueError):
                raise self._gone() from None
            return number

    def _gone(self) -> DeviceError:
        what = "a lowering process has ended" if len(self._ready) == len(WHAT) else "Triton does not start"
        return DeviceError(f"{what} (log: {self._log})")

    def _count(self, do: str, seconds: float) -> None:
        with self._changed:
            self.tally[do].children += 1
            self.tally[do].seconds += seconds

    def _answer(self, do: str, scratch: Path, status: int) -> bytes | ChildError:
        if status == 0:
            answer = read_small(scratch / answer_file, ANSWER_BYTES)
            return answer or ChildError("rejected", "the host code ended the process")
        what = WHAT[do]
        if status == TIMED_OUT:
            return ChildError("timed_out", f"{what} took longer than {self._limits.wall:g} s")
        said = read_small(scratch / "log.txt", LOG_BYTES).decode(errors="replace").strip()
        if status == BROKEN:
            raise DeviceError(f"the lowering sandbox failed: {said[-300:]}")
        if status in CPU_SIGNALS:
            return ChildError("timed_out", f"{what} used more than {self._limits.cpu} s of processor time")
        last = said.splitlines()[-1] if said else f"status {status}"
        if "MemoryError" in last or "bad_alloc" in last:
            last = f"more than {self._limits.memory >> 30} GiB of memory"
        return ChildError("crashed", f"{what} failed: {last[:300]}")

    def _read(self, do: str) -> None:
        """The only reader of a zygote's words."""
        stdout = self._zygotes[do].stdout
        assert stdout is not None
        for line in stdout:
            with self._changed:
                if line == b"ready\n":
                    self._ready.add(do)
                else:
                    number, status = line.split()
                    self._status[int(number)] = int(status)
                    self._free += 1
                self._changed.notify_all()
        with self._changed:
            self._dead = True
            self._changed.notify_all()
        stdout.close()


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
    huge = "glibc.malloc.hugetlb=1"  # of a heap in huge pages less is copied by a fork: a third of its time
    return {**kept, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "GLIBC_TUNABLES": huge}
