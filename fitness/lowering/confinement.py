"""A forked process gives up its rights: the calls of ``fitness/native/enter.c``, and its watcher."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMED_OUT, BROKEN = 124, 125
LOOKS = 30  # at which job a child is, in the time that it has for one
SYSTEM = ("self", "cpuinfo", "meminfo", "modules", "devices", "driver", "version", "stat", "sys")
FACTS = ["/sys", *(f"/proc/{name}" for name in SYSTEM)]  # what a driver asks the system


@dataclass(frozen=True)
class Limits:
    """Of one job: seconds of wall and processor time, and bytes of address space."""

    wall: float = 30.0
    cpu: int = 20
    memory: int = 6 << 30


class Confinement:
    """The sandbox's library, loaded once before forking.

    Args:
        library: path of the compiled ``enter``.
        strict: False where the user said so: then steps that the system cannot do are skipped.
        limits: of one job.
    """

    def __init__(self, library: Path, *, strict: bool, limits: Limits) -> None:
        self._library = ctypes.CDLL(str(library), use_errno=True)
        self._strict = int(strict)
        self._limits = limits
        self._reads = _interpreter_folders()

    def separate(self) -> None:
        """Later forks of this process get namespaces of their own."""
        self._library.separate(self._strict)

    @property
    def fresh_s(self) -> float:
        """Processor time after which a process takes no more jobs: what it starts inherits its limit."""
        return self._limits.cpu / 4

    def enter(self, scratch: Path, log: int, *, alone: bool, jobs: int = 1) -> None:
        """Keep next to no rights; ``alone``: not even that of starting processes.

        ``scratch`` stays writable, ``log`` becomes standard output and error. Before each of several ``jobs``
        comes ``next_job``.
        """
        reads = _texts(self._reads)
        limits = ctypes.c_ulong(self._limits.cpu * jobs), ctypes.c_ulong(self._limits.memory)
        self._library.enter(str(scratch).encode(), reads, log, *limits, int(alone), self._strict)

    def next_job(self) -> None:
        """The limit of processor time counts from here."""
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        soft = math.ceil(time.process_time()) + self._limits.cpu
        resource.setrlimit(resource.RLIMIT_CPU, (min(soft, most), most))

    def enter_with_device(self, scratch: Path, log: int, *, file_bytes: int) -> None:
        """Keep few rights, but those that a driver of a GPU needs; ``file_bytes``: of the largest file."""
        lists = [_texts(paths) for paths in ([*self._reads, *_library_folders()], _devices(), FACTS)]
        limits = ctypes.c_ulong(self._limits.cpu), ctypes.c_ulong(file_bytes)
        self._library.enter_with_device(str(scratch).encode(), *lists, log, *limits, self._strict)

    def watch(self, child: int, begun: Sequence[Path] = ()) -> int:
        """Wait for a child; its status, 128 + N for signal N, or ``TIMED_OUT``.

        Args:
            child: its process.
            begun: files of which it makes one as it begins a job; each gives it the wall limit anew.
        """
        handle = os.pidfd_open(child)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        since, count, ended = time.monotonic(), 0, False
        while not ended and (left := since + self._limits.wall - time.monotonic()) > 0:
            look = len(begun) > 1
            ended = bool(poll.poll(1000 * (min(left, self._limits.wall / LOOKS) if look else left)))
            if look and count < (now := sum(map(os.path.lexists, begun))):
                since, count = time.monotonic(), now
        if not ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not ended:
            return TIMED_OUT
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _texts(paths: Sequence[object]) -> Any:
    """Paths as C takes them, with NULL behind the last."""
    return (ctypes.c_char_p * (len(paths) + 1))(*[str(path).encode() for path in paths], None)


def _devices() -> list[Path]:
    """GPUs, and the sources of chance and zeros that any program may read."""
    found = [*Path("/dev").glob("nvidia*"), Path("/dev/kfd"), Path("/dev/dri")]
    return [*found, *(Path("/dev") / name for name in ("zero", "random", "urandom"))]


def _library_folders() -> list[Path]:
    """Where the user says that libraries of the driver lie."""
    named = [*os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), os.environ.get("CUDA_HOME", "")]
    return [Path(name).resolve() for name in named if name and Path(name).is_dir()]


def _interpreter_folders() -> list[Path]:
    """Where Python, torch, Triton and this package lie: children may read there and run what is there."""
    ours = Path(__file__).resolve().parents[1]
    installed = {Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))}
    found = {Path(sys.prefix), Path(sys.base_prefix), ours, *installed}
    return sorted(path.resolve() for path in found if path.resolve() != Path("/usr") and path.exists())
