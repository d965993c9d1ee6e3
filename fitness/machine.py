"""This machine: what results depend on, and who may measure on it. Imports no torch."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fitness import native
from fitness.target import DeviceError

_CPU = Path("/sys/devices/system/cpu")
_DEFAULT_CACHE = 32 << 20  # where the system does not tell


def facts() -> dict[str, str]:
    """What a result has to be read with: processor, cores, cache, vector width, kernel, compiler, isolation.

    Raises:
        DeviceError: there is no gcc, so kernels cannot be built here at all.
    """
    missing = native.features().missing
    return {
        "cpu": cpu_model(),
        "cores": str(cores()),
        "cache_bytes": str(cache_bytes()),
        "vector_bytes": str(vector_bytes()),
        "kernel": platform.release(),
        "compiler": compiler(),
        "isolation": "weak: no " + ", no ".join(missing) if missing else "process",
    }


def cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


@cache
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    named = (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name"))
    return next(named, platform.machine())


@cache
def cache_bytes() -> int:
    """Size of the last-level cache that one core sees; 32 MiB where the system does not tell."""
    largest = (0, 0)
    for index in (_CPU / "cpu0" / "cache").glob("index*"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            level = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
            unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[size[-1]]
            largest = max(largest, (level, int(size[:-1]) * unit))
    return largest[1] or _DEFAULT_CACHE


@cache
def line_bytes() -> int:
    """Size of a cache line."""
    with contextlib.suppress(OSError, ValueError):
        return int((_CPU / "cpu0/cache/index0/coherency_line_size").read_text())
    return 64


@cache
def vector_bytes() -> int:
    """Width of the widest vector register: 64, 32 or 16."""
    flags = next((line for line in _cpuinfo() if line.startswith("flags")), "").split()
    return 64 if "avx512f" in flags else 32 if "avx2" in flags else 16


@cache
def compiler() -> str:
    """First line of ``g++ --version``.

    Raises:
        DeviceError: there is no g++.
    """
    try:
        ask = [str(compiler_path()), "--version"]
        seen = native.compilers_environment()
        done = subprocess.run(ask, capture_output=True, text=True, check=True, timeout=30, env=seen)
    except (OSError, subprocess.SubprocessError) as why:
        raise DeviceError(f"g++ does not run ({why}); install it: C++ kernels are built with it") from why
    return done.stdout.splitlines()[0] if done.stdout else "g++"


@cache
def compiler_path() -> Path:
    """Where g++ is.

    Raises:
        DeviceError: there is none.
    """
    found = shutil.which("g++")
    if found is None:
        raise DeviceError("there is no g++ on the PATH; install it: C++ kernels are built with it")
    return Path(found)


@contextlib.contextmanager
def lease(name: str, patience_s: float = 0.0) -> Iterator[None]:
    """Hold a device for this process: two judges at once would measure each other.

    The lock ends with the process, however that ends.

    Args:
        name: of the device.
        patience_s: how long to wait for another holder to end.

    Raises:
        DeviceError: another process of this user holds it.
    """
    folder = native.cache_folder() / "leases"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience_s
        while not _locked(file) and time.monotonic() < deadline:
            time.sleep(0.1)
        if not _locked(file):
            holder = os.read(file, 32).decode(errors="replace").strip()
            who = f"process {holder}" if holder else "another process"
            raise DeviceError(
                f"another judge holds the {name} ({who}); wait until it is done, or end it: "
                "two at once would measure each other"
            )
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    """Take the lock, or say that another has it; taking it twice is harmless."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _cpuinfo() -> list[str]:
    with contextlib.suppress(OSError):
        return Path("/proc/cpuinfo").read_text().splitlines()
    return []
