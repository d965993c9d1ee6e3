"""The client's end of the zygotes: jobs from several threads at once, in children that do one or several."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fitness import native
from fitness.lowering.confinement import BROKEN, TIMED_OUT, Limits
from fitness.lowering.jobs import ANSWER_BYTES, Job, answer_file, log_file
from fitness.lowering.offers import Offer, Offers
from fitness.lowering.places import Asker, Places
from fitness.target import DeviceError
from populations.text import open_left

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


Asked = Offers[bytes | ChildError]


@dataclass(frozen=True)
class _Child:
    """One at work: the number of its order, what it may take, and since when."""

    number: int
    offer: Offer
    began: float


@dataclass
class Tally:
    """How many children did how many jobs of one kind, and for how many seconds of wall time in sum."""

    children: int = 0
    jobs: int = 0
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
        self._places = Places(most)
        self._turns = itertools.count(1)
        self._ordering = threading.Lock()
        self._orders = itertools.count(1)
        self._ready = {do: threading.Event() for do in WHAT}
        self._started: set[str] = set()
        self._dead = False
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

    def turn(self) -> int:
        """A number for one who begins to lower: places go to the lowest first."""
        return next(self._turns)

    def ask(self, do: str, scratch: Path, job: bytes, turn: int = 0) -> bytes:
        """The child's answer to one job, done in ``scratch`` itself.

        Raises:
            ChildError: it died, took too long, or left no answer.
            DeviceError: a zygote or the sandbox is broken.
        """
        (answer,) = self.ask_all(do, [Job(scratch, ".", job)], lambda _: False, turn)
        if isinstance(answer, ChildError):
            raise answer
        assert answer is not None  # the first job is always begun
        return answer

    def ask_all(
        self,
        do: str,
        jobs: Sequence[Job],
        enough: Callable[[bytes], bool],
        turn: int = 0,
    ) -> list[bytes | ChildError | None]:
        """Answers to jobs, done side by side as far as there are children free.

        A child that has done one takes the next that none has begun, in order. After one that failed, or an
        answer that is ``enough``, none behind it is begun; their answers may be None. Limits hold for each
        job alone: one that crashes behind others in one child is done once more in a child of its own.

        Args:
            do: "trace" or "compile".
            jobs: what to do; those with one ``scratch`` may be done by one child.
            enough: whether an answer makes those behind it needless.
            turn: see ``turn``.

        Raises:
            DeviceError: a zygote or the sandbox is broken.
        """
        offers: Asked = Offers(jobs)
        running: dict[int, _Child] = {}
        with self._places.asker(turn) as asker:
            while (wanted := offers.wanted(_starting(offers, running))) or running:
                heard = self._places.next(asker, len(wanted), self._patience(running, len(jobs)))
                if heard is None:
                    raise self._silent()
                places, ended = heard
                for number, status in ended:
                    self._take(do, offers, running.pop(number), status, enough)
                for offer in offers.wanted(_starting(offers, running))[:places]:
                    child = self._begin(do, offers, offer, asker)
                    running[child.number] = child
        for index in offers.lost():
            offers.answer(index, ChildError("crashed", f"{WHAT[do]} failed: no answer"), last=True)
        return offers.answers

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

    def _patience(self, running: object, jobs: int) -> float | None:
        return self._limits.wall * jobs + PATIENCE_S if running else None  # a place comes free in the end

    def _silent(self) -> DeviceError:
        """What it means that nothing was heard."""
        if self._dead:
            return self._gone()
        self._end()
        return DeviceError(f"a lowering process does not answer (log: {self._log})")

    def _begin(self, do: str, offers: Asked, offer: Offer, asker: Asker) -> _Child:
        """Order a child."""
        zygote = self._zygotes[do]
        assert zygote.stdin is not None
        if not self._ready[do].wait(READY_S) or self._dead:
            raise self._gone()
        offers.begin(offer)
        names = [offers.jobs[index].name for index in offer.indices]
        with self._ordering:
            number = next(self._orders)
            self._places.begun(asker, number)
            order = {"id": number, "scratch": str(offer.scratch), "jobs": names, "file": offer.file}
            try:
                zygote.stdin.write((json.dumps(order) + "\n").encode())
                zygote.stdin.flush()
            except (BrokenPipeError, ValueError):
                raise self._gone() from None
        return _Child(number, offer, time.monotonic())

    def _gone(self) -> DeviceError:
        what = "a lowering process has ended" if len(self._started) == len(WHAT) else "Triton does not start"
        return DeviceError(f"{what} (log: {self._log})")

    def _take(
        self, do: str, offers: Asked, child: _Child, status: int, enough: Callable[[bytes], bool]
    ) -> None:
        """What a child left: its answers, and why the job that it ended at has none."""
        taken = offers.taken(child.offer, child.number)
        with self._ordering:
            tally = self.tally[do]
            tally.children += 1
            tally.jobs += len(taken)
            tally.seconds += time.monotonic() - child.began
        texts = [read_small(offers.jobs[index].folder / answer_file, ANSWER_BYTES) for index in taken]
        for index, text in zip(taken, texts, strict=True):
            if text and (status == 0 or index != taken[-1]):
                offers.answer(index, text, last=enough(text))
        if status == 0 and all(texts):
            return
        why = self._why(do, child.offer.scratch / log_file(child.number), status)
        failed = (taken or child.offer.indices)[-1 if taken else 0]
        if len(taken) > 1 and why.status == "crashed" and offers.again(failed):
            return
        offers.answer(failed, why, last=True)

    def _why(self, do: str, log: Path, status: int) -> ChildError:
        """What ended a child that left no answer."""
        if status == 0:
            return ChildError("rejected", "the host code ended the process")
        what = WHAT[do]
        if status == TIMED_OUT:
            return ChildError("timed_out", f"{what} took longer than {self._limits.wall:g} s")
        said = read_small(log, LOG_BYTES).decode(errors="replace").strip()
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
            if line == b"ready\n":
                self._started.add(do)
                self._ready[do].set()
            else:
                number, status = line.split()
                self._places.ended(int(number), int(status))
        self._end()
        stdout.close()

    def _end(self) -> None:
        """No more can be asked."""
        self._dead = True
        self._places.close()
        for ready in self._ready.values():
            ready.set()


def _starting(offers: Asked, running: Mapping[int, _Child]) -> list[Offer]:
    """Offers of children that have taken nothing yet."""
    return [child.offer for child in running.values() if not offers.taken(child.offer, child.number)]


def read_small(path: Path, most: int) -> bytes:
    """At most ``most`` bytes of a regular file that untrusted code may have written; no link is followed."""
    try:
        file = open_left(path)
    except OSError:
        return b""
    with file:
        return file.read(most)


def _environment(folder: Path) -> dict[str, str]:
    huge = "glibc.malloc.hugetlb=1"  # of a heap in huge pages less is copied by a fork: a third of its time
    return {
        **native.environment(PASSED_ON),
        "HOME": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GLIBC_TUNABLES": huge,
    }
