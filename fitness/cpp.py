"""The ``cpp`` language: what may be built, how it is built, and what the built library may contain.

The scans of the source (``admit``) are lints; what holds is the sandbox around the compiler, the check of the
library, and the confined runner. Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

from fitness import cpp_source, library, machine, native
from fitness.card import ProblemCard
from fitness.cpp_source import normalise
from fitness.target import Admission, Built, DeviceError
from populations.kernel import Kernel
from populations.verdict import Evidence, Outcome, Stage, Verdict

# Vector math (libmvec) without fast-math's start-up constructor, and without assuming finite values.
OPTIMISE = (
    "-O3", "-march=native", "-fopenmp", "-nostartfiles", "-D__FAST_MATH__", "-fno-math-errno",
    "-fno-trapping-math", "-fassociative-math", "-freciprocal-math", "-fno-signed-zeros",
)  # fmt: skip
# A self-contained library whose functions the compiler may inline as it would in a program.
SHARED = (
    "-std=c++17", "-shared", "-fPIC", "-fno-semantic-interposition", "-w", "-fdiagnostics-color=never",
    "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,--no-undefined", "-Wl,--as-needed", "-Wl,--build-id=none",
)  # fmt: skip
FLAGS = (*OPTIMISE, *SHARED)

__all__ = ["FLAGS", "admit", "build", "check_library", "normalise", "sweep"]

SOURCE_BYTES = 256 << 10
WALL_S = 30
CPU_S = 20
MEMORY = 6 << 30
LOG_CHARACTERS = 2000
KEPT = 256  # libraries in one folder: more than any batch has; what was removed is built again when asked for
SCRATCH = "build-"

_keeping = threading.Lock()  # a library found must not be removed by the next thread before it counts as used


def admit(kernel: Kernel, card: ProblemCard) -> Admission | Verdict:
    """Rules that need no build: size, text, the entry and its number of arguments, and the lints.

    Whether the rest parses is the compiler's to say, with a better message than ours would be.

    Returns:
        The admission, or a ``rejected`` verdict whose reason names the line.
    """
    source = kernel.source
    if kernel.language != "cpp":
        return _rejected(f"the language is {kernel.language}, this target takes cpp")
    try:
        size = len(source.encode())
    except UnicodeEncodeError as why:
        return _rejected(f"line {cpp_source.line_of(source, why.start)}: is not UTF-8 text")
    if size > SOURCE_BYTES:
        return _rejected(f"the source has {size} bytes; at most {SOURCE_BYTES} (256 KiB) are allowed")
    if "\0" in source:
        return _rejected(f"line {cpp_source.line_of(source, source.index(chr(0)))}: contains a NUL character")
    wrong = cpp_source.fault(source, len(card.given.arguments) + 1)
    if wrong:
        return _rejected(wrong)
    return Admission(kernel, hashlib.sha256(normalise(source).encode()).hexdigest())


def build(admission: Admission, folder: Path, *, sandboxed: bool) -> Built | Verdict:
    """Compile in the sandbox, check the library, and keep it in ``folder``; a second call finds it there.

    Safe to call from several threads at once. Of many libraries the ``KEPT`` last used ones stay.

    Returns:
        The built kernel; ``uncompilable`` with the compiler's first error, or ``rejected`` where the library
        contains what a kernel must not (stage ``load``).

    Raises:
        DeviceError: no compiler, or the sandbox cannot be set up.
    """
    kernel = admission.kernel
    key = hashlib.sha256("\0".join([kernel.sha, *FLAGS, machine.compiler(), machine.cpu_model()]).encode())
    artifact = (folder / f"{key.hexdigest()[:32]}.so").absolute()
    notes = artifact.with_suffix(".json")
    known = _found(artifact, notes)
    if known is not None:
        return Built(kernel, artifact, known["artifact_sha"], known["traits"])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH) as scratch:
        made = Path(scratch).absolute() / "kernel.so"
        wrong = _compile(kernel, made, sandboxed=sandboxed)
        if wrong is not None:
            return wrong
        fault = check_library(made)
        if fault is not None:
            return Verdict(Outcome.REJECTED, Stage.LOAD, fault)
        sha, traits = library.fingerprint(made), library.traits(made)
        made.chmod(0o500)
        made.replace(artifact)
        draft = Path(scratch) / "notes.json"
        draft.write_text(json.dumps({"artifact_sha": sha, "traits": traits}))
        draft.replace(notes)
    _forget_the_oldest(folder)
    return Built(kernel, artifact, sha, traits)


def sweep(folder: Path) -> None:
    """Remove what builds that were killed left in ``folder``; only while nothing is being built there."""
    for scratch in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)
    for made in folder.glob("*.so"):
        if not made.with_suffix(".json").exists():
            made.unlink()


def check_library(path: Path) -> str | None:
    """Why a library must not be loaded, in one line; None where nothing of it runs before it is called."""
    return library.fault(path)


def _found(artifact: Path, notes: Path) -> dict[str, Any] | None:
    """What is known of a library that is still there; it counts as used now."""
    with _keeping:
        if not (notes.exists() and artifact.exists()):
            return None
        os.utime(notes)
        known: dict[str, Any] = json.loads(notes.read_text())
        return known


def _forget_the_oldest(folder: Path) -> None:
    with _keeping:
        by_use = sorted(folder.glob("*.json"), key=lambda notes: notes.stat().st_mtime_ns)
        for notes in by_use[:-KEPT]:
            notes.unlink()
            notes.with_suffix(".so").unlink(missing_ok=True)


def _compile(kernel: Kernel, made: Path, *, sandboxed: bool) -> Verdict | None:
    """Run g++; None where it made a library."""
    source = made.with_name("kernel.cpp")
    source.write_bytes(kernel.source.encode())
    limits = ["--wall", str(WALL_S), "--cpu", str(CPU_S), "--memory", str(MEMORY)]
    order = ["--scratch", str(made.parent), *limits, *_compiler_home()]
    if not sandboxed:
        order.append("--unsandboxed")
    compiler = [str(machine.compiler_path()), *FLAGS, "-o", made.name, source.name]
    done = subprocess.run(
        [native.tool("sandbox"), *order, "--parent", str(os.getpid()), "--", *compiler],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={},
        timeout=WALL_S + 30,
    )
    log = done.stdout.decode(errors="replace")
    if done.returncode == 125 or done.stderr:
        why = (done.stderr.decode(errors="replace") or log).strip()
        raise DeviceError(f"the build sandbox failed: {why[:300]}")
    if done.returncode == 0 and made.is_file() and not made.is_symlink():
        return None
    reason = _first_error(done.returncode, log)
    return Verdict(Outcome.UNCOMPILABLE, Stage.BUILD, reason, Evidence(log=_shorten(log)))


@cache
def _compiler_home() -> list[str]:
    """Where a compiler that does not live in the system's folders keeps its files."""
    home = machine.compiler_path().resolve().parent.parent
    system = ("/usr", "/bin", "/")
    return [] if str(home) in system or home.is_relative_to("/usr") else ["--read", str(home)]


def _first_error(status: int, log: str) -> str:
    if status == 124:
        return f"compiling took longer than {WALL_S} s"
    if "CPU time limit exceeded" in log or status in (128 + 24, 128 + 9):
        return f"compiling used more than {CPU_S} s of processor time"
    if "out of memory" in log or "virtual memory exhausted" in log or "memory exhausted" in log:
        return f"compiling needed more than {MEMORY >> 30} GiB of memory"
    if "File size limit exceeded" in log or "file truncated" in log:
        return "compiling wrote a file of more than 64 MiB"
    for line in log.splitlines():
        found = re.match(r"kernel\.cpp:(\d+):(?:\d+:)? (?:fatal )?error: (.*)", line)
        if found:
            return f"line {found[1]}: {found[2]}"
    for line in log.splitlines():
        if "undefined reference" in line or "error:" in line or "Error:" in line:
            return re.sub(r"^.*?(undefined reference|[eE]rror:)", r"\1", line)[:300]
    return f"the compiler ended with status {status}"


def _shorten(log: str) -> str:
    return log if len(log) <= LOG_CHARACTERS else log[:LOG_CHARACTERS] + "\n[shortened]"


def _rejected(reason: str) -> Verdict:
    return Verdict(Outcome.REJECTED, Stage.ADMIT, reason)
