"""A kernel library in a confined process, run in blocks under the judge's clock.

Between blocks the runner is stopped: the judge fills inputs and poisons outputs meanwhile. A block is
clock, SIGCONT, reply, SIGSTOP, clock. The second clock is read when the kernel says that every thread has
stopped, so whatever a kernel does, it does inside the time that counts; nothing it says is believed.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import signal
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from fitness import native
from fitness.judge.buffers import ArgumentSets
from fitness.judge.rig import KernelDied
from fitness.target import DeviceError
from populations.verdict import Outcome

MEMORY = 2 << 30  # bytes that a kernel may add to what the runner maps
PATIENCE = 8  # time-outs that a kernel may take whose threads have to wait for cores
START_S = 30.0  # for loading a library; an honest one takes milliseconds
MOST_ARGUMENTS = 64
_FIRST_FD = 3  # commands, replies, header, inputs, outputs: 3 to 7 in the runner
_ABOVE = 64  # our copies on the way there, clear of those numbers

_SIGNALS: dict[int, str] = {
    signal.SIGSEGV: "segmentation fault (it went outside its arguments, wrote to an input, used memory that "
    "it did not get, or ran out of stack)",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "arithmetic fault (an integer division by zero)",
    signal.SIGILL: "illegal instruction",
    signal.SIGABRT: "aborted (an uncaught C++ exception, a failed assertion or corrupted heap)",
    signal.SIGSYS: "made a system call outside the allow-list (killed by seccomp): a kernel opens no files, "
    "prints nothing, never sleeps, makes no process and no thread beyond those of its first parallel region",
    signal.SIGKILL: "killed from outside (ran out of memory?)",
    signal.SIGXCPU: "used up its processor time",
}


@dataclass(frozen=True)
class Block:
    """One block by the judge's clock.

    Attributes:
        seconds: wall time from before the go until every thread had stopped.
        cpu_seconds: processor time of all threads in it; above seconds x cores something is wrong.
        involuntary_switches: how often a thread lost its core to somebody else. The judge itself causes one
            now and then, when it wakes for the reply: that one costs nothing.
        waiting_seconds: how long threads, all together, were ready to run and had no core; None where the
            kernel keeps no such account. A few 10 us belong to a block's start and stop; more disturbs it.
    """

    seconds: float
    cpu_seconds: float
    involuntary_switches: int
    waiting_seconds: float | None = None


class Runner:
    """A library loaded in its own confined process, stopped between blocks. A context manager.

    The process dies with the *thread* that makes this object, so make it in one that lives long enough.

    Args:
        library: shared library with a ``kernel_function``. Check it first: what runs at load time is
            confined, but no clock sees it.
        sets: what the kernel is called on.
        cores: OpenMP threads, made before the kernel is loaded.
        sandboxed: False: use what protection the system has, and don't insist.

    Raises:
        KernelDied: the library cannot be loaded.
        DeviceError: the runner itself cannot work on this system.

    Attributes:
        pid: the runner's process id, which is its process group's as well.
    """

    def __init__(self, library: Path, sets: ArgumentSets, *, cores: int, sandboxed: bool) -> None:
        if len(sets.arguments) > MOST_ARGUMENTS:
            raise DeviceError(f"a kernel has at most {MOST_ARGUMENTS} arguments, not {len(sets.arguments)}")
        self._commands, self._replies, self.pid = _spawn(library, sets, cores, sandboxed)
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)
        self._cpu_clock = (~self.pid << 3) | 2  # the kernel's number for "processor time of that process"
        self._ended: KernelDied | None = None
        self._account = Account(0, None)
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise

    def block(self, first: int, count: int, timeout_s: float) -> Block:
        """Run sets ``first`` to ``first + count - 1``, each exactly once, and stop again.

        A count of 0 measures the fixed cost. The caller compares ``cpu_seconds`` with what is allowed.

        Raises:
            KernelDied: the runner ended, took longer than ``timeout_s`` (more where the machine kept it
                waiting: see ``_answered``) or wrote what it should not.
        """
        if self._ended is not None:
            raise self._ended
        # The command may lie in the pipe before the clock starts: a stopped process cannot read it.
        try:
            os.write(self._commands, struct.pack("=ii", first, count))
        except BrokenPipeError:
            raise self._died() from None
        cpu = time.clock_gettime(self._cpu_clock)
        start = time.perf_counter()
        os.kill(self.pid, signal.SIGCONT)
        answered = self._answered(timeout_s)
        os.kill(self.pid, signal.SIGSTOP)
        change = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        seconds = time.perf_counter() - start
        if change is None or change.si_code != os.CLD_STOPPED:
            raise self._died()
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)
        cpu = time.clock_gettime(self._cpu_clock) - cpu
        if not answered:
            raise self._end(Outcome.TIMED_OUT, f"no end within {timeout_s:.3g} s")
        if self._read() != b"D" or self._poll.poll(0):
            raise self._end(Outcome.CRASHED, "wrote to the reply channel")
        before, self._account = self._account, account(self.pid)
        switches = self._account.switches - before.switches
        waiting = None
        if before.waiting is not None and self._account.waiting is not None:
            waiting = self._account.waiting - before.waiting
        return Block(seconds, cpu, switches, waiting)

    def _answered(self, timeout_s: float) -> bool:
        """Whether the block ended in time.

        The time starts anew where threads were ready and had no core for a quarter of it: on a full machine
        they also wait for each other. Once, it does where the kernel hardly ran: the machine stood still, or
        it waits in vain. One that computes without end has used its time and gets no more.
        """
        milliseconds = math.ceil(timeout_s * 1000)
        waited = self._account.waiting or 0.0
        cpu = time.clock_gettime(self._cpu_clock)
        for attempt in range(PATIENCE):
            if self._poll.poll(milliseconds):
                return True
            waited, before = account(self.pid).waiting or 0.0, waited
            hardly_ran = time.clock_gettime(self._cpu_clock) - cpu < timeout_s / 2
            if not (waited - before > timeout_s / 4 or (hardly_ran and attempt == 0)):
                return False
        return False

    def close(self) -> None:
        """End the runner and reap it. Safe to call twice."""
        if self._ended is None:
            self._ended = KernelDied(Outcome.CRASHED, "the runner is closed")
            self._reap()
        for name in ("_commands", "_replies"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _await_ready(self) -> None:
        answered = self._poll.poll(int(START_S * 1000))
        if not answered:
            raise self._end(Outcome.TIMED_OUT, f"the library did not load within {START_S:g} s")
        word = self._read()
        if word == b"R":
            os.kill(self.pid, signal.SIGSTOP)
            change = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if change is None or change.si_code != os.CLD_STOPPED:
                raise self._died()
            os.waitid(os.P_PID, self.pid, os.WSTOPPED)
            self._account = account(self.pid)
            return
        why = word[1:].decode(errors="replace")
        if word[:1] == b"E":
            raise self._end(Outcome.CRASHED, why)
        if word[:1] == b"F":
            self._end(Outcome.CRASHED, why)
            raise DeviceError(f"the runner cannot do its part: {why}")
        raise self._died() if not word else self._end(Outcome.CRASHED, "wrote to the reply channel")

    def _read(self) -> bytes:
        try:
            return os.read(self._replies, 512)
        except BlockingIOError:
            return b""

    def _died(self) -> KernelDied:
        """Reap a runner that ended by itself and say how."""
        end = self._reap(kill=False)
        if end.si_code == os.CLD_EXITED:
            reason = f"exited with status {end.si_status} before it replied"
        else:
            reason = _SIGNALS.get(end.si_status, f"killed by signal {end.si_status}")
        self._ended = KernelDied(Outcome.CRASHED, reason)
        return self._ended

    def _end(self, outcome: Outcome, reason: str) -> KernelDied:
        self._ended = KernelDied(outcome, reason)
        self._reap()
        return self._ended

    def _reap(self, *, kill: bool = True) -> os.waitid_result:
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        end = os.waitid(os.P_PID, self.pid, os.WEXITED)
        assert end is not None  # only WNOHANG makes it None
        return end


def _spawn(library: Path, sets: ArgumentSets, cores: int, sandboxed: bool) -> tuple[int, int, int]:
    """Start a runner; returns our ends of its command and reply pipes, and its process id."""
    program = native.tool("runner")
    with contextlib.ExitStack() as ours:
        command_read, commands = os.pipe()
        ours.callback(os.close, command_read)
        replies, reply_write = os.pipe()
        ours.callback(os.close, reply_write)
        read_only = sets.read_only_file()
        ours.callback(os.close, read_only)
        header = ours.enter_context(_read_only_copy(sets.header(cores, MEMORY)))
        passed = []
        for fd in (command_read, reply_write, header, read_only, sets.outputs_file()):
            passed.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
            ours.callback(os.close, passed[-1])
        pid = os.posix_spawn(
            program,
            [str(program), str(os.getpid()), str(int(sandboxed)), str(library.absolute())],
            environment(cores),
            file_actions=[
                *((os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)),
                *((os.POSIX_SPAWN_DUP2, fd, _FIRST_FD + i) for i, fd in enumerate(passed)),
            ],
            setpgroup=0,
        )
    os.set_blocking(replies, False)
    return commands, replies, pid


def environment(cores: int) -> dict[str, str]:
    """All that a runner's environment holds: threads as declared, and an allocator that keeps its memory.

    Without the latter each fresh large scratch buffer would be paid for in page faults.
    """
    return {
        "OMP_NUM_THREADS": str(cores),
        "OMP_THREAD_LIMIT": str(cores),
        "OMP_DYNAMIC": "false",
        "OMP_PROC_BIND": "true",  # else two threads now and then wake on one core, and a block takes twice
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
        "MALLOC_TOP_PAD_": str(1 << 24),
    }


@contextlib.contextmanager
def _read_only_copy(content: bytes) -> Iterator[int]:
    """A descriptor, read-only, of an anonymous file with this content."""
    file = os.memfd_create("header", os.MFD_CLOEXEC)
    try:
        os.write(file, content)
        reading = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(file)
    try:
        yield reading
    finally:
        os.close(reading)


@dataclass(frozen=True)
class Account:
    """What the system's scheduler did to a process so far (see ``Block``)."""

    switches: int
    waiting: float | None


def account(pid: int) -> Account:
    """Involuntary switches and time on run queues so far, over all threads of a process."""
    switches, waiting = 0, 0
    told = True
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            switches += int((thread / "status").read_bytes().rsplit(b":", 1)[1])
        except OSError:
            continue  # it just ended
        try:
            waiting += int((thread / "schedstat").read_bytes().split()[1])
        except (OSError, IndexError):
            told = False
    return Account(switches, waiting * 1e-9 if told else None)
