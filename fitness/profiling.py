"""A kernel under the profiler: lowered, its binaries read, its plan run by a trusted process under ncu."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from fitness import counters, machine
from fitness.card import Case
from fitness.counters import Counters
from fitness.cuda import environment
from fitness.lowering import Lowered, Lowering
from fitness.outline import outlines
from fitness.plan import Launch
from fitness.target import DeviceError, ProblemError
from populations.calibration import Roofline
from populations.kernel import Kernel
from populations.profile import KernelProfile
from populations.verdict import Verdict

WATCHED = [sys.executable, "-P", "-m", "fitness.judge.cuda.profiled"]
DEVICE_S, NCU_S, LEASE_S = 240.0, 300.0, 5.0


@dataclass(frozen=True)
class Device:
    """The GPU of this machine: its architecture and what trusted kernels reach."""

    name: str
    arch: str
    roofline: Roofline


@dataclass(frozen=True)
class Profiled:
    """What is known of one kernel.

    Attributes:
        case: that it was looked at on.
        static: from its binaries.
        counters: one entry a launch; None: nobody could count.
        reason: why not, in one line; None where somebody could.
        said: all that ncu and the process under it said, for looking into a failure.
    """

    case: str
    static: tuple[KernelProfile, ...]
    counters: tuple[Counters, ...] | None
    reason: str | None
    said: str = ""


def device() -> Device:
    """The current GPU; its roofline is measured where it was not kept.

    Raises:
        DeviceError: there is none, or a judge holds it.
    """
    with machine.lease("cuda", LEASE_S):
        status, out, err = _ran([*WATCHED, "device"], DEVICE_S)
    if status is None:
        raise DeviceError(f"looking at the GPU took longer than {DEVICE_S:.0f} s")
    if status != 0:
        raise DeviceError(_last_line(err) or f"looking at the GPU ended with status {status}")
    told = json.loads(_last_line(out))
    roofline = TypeAdapter(Roofline).validate_python(told["roofline"])
    return Device(told["facts"]["device"], told["facts"]["arch"], roofline)


def profiled(
    kernel: Kernel,
    problem: str,
    *,
    folder: Path,
    arch: str,
    seed: int = 0,
    sandboxed: bool = True,
    entry: str | None = None,
    missing: str | None = None,
) -> Profiled | Verdict:
    """Lower a kernel for its problem's first timed case, and count what one call of it does.

    Args:
        kernel: a Triton source.
        problem: name or path.
        folder: for plans and logs.
        arch: of the device.
        seed: of the case shapes that a problem draws.
        sandboxed: whether host code is confined.
        entry: of the source; None: the usual ones.
        missing: why nothing can be counted, where that is known; None: try.

    Returns:
        A verdict where the kernel cannot be lowered.

    Raises:
        ProblemError: the problem has no case.
        DeviceError: lowering is broken, or a judge holds the device.
    """
    (card,) = outlines([problem], "cuda")
    case = next((one for one in card.cases if one.timed), None)
    if case is None:
        raise ProblemError(f"{problem} has no timed case to profile a kernel on")
    lowering = Lowering(folder, arch=arch, sandboxed=sandboxed)
    try:
        lowered = lowering.lower(kernel, [case], entry)
        if isinstance(lowered, Verdict):
            return lowered
        static = lowering.built(lowered, [case]).profile
    finally:
        lowering.close()
    if missing is not None:
        return Profiled(case.name, static, None, missing)
    return Profiled(case.name, static, *_counted(lowered, case, problem, seed, folder))


def _counted(
    lowered: Lowered, case: Case, problem: str, seed: int, folder: Path
) -> tuple[tuple[Counters, ...] | None, str | None, str]:
    """Counters of the plan's launches, else why there are none; and what was said."""
    ncu = counters.profiler()
    if ncu is None:
        return None, "there is no ncu on the PATH nor in /usr/local/cuda*/bin: install Nsight Compute", ""
    launches = [step.kernel for step in lowered.plan.case(case.name).steps if isinstance(step, Launch)]
    names = {lowered.plan.binaries[index].name for index in launches}
    watched = [*WATCHED, "plan", str(lowered.folder / "plan.json"), "--problem", problem]
    watched += ["--case", case.name, "--seed", str(seed)]
    log = folder / "ncu.log"
    said = why = ""
    with machine.lease("cuda", LEASE_S):
        for command in counters.commands(ncu, names, log, watched):
            log.unlink(missing_ok=True)
            status, out, err = _ran(command, NCU_S)
            told = log.read_text(errors="replace") if log.exists() else ""
            said += f"$ {' '.join(command)}\nstatus {status}\n{told}\n{out}\n{err}\n"
            found = counters.read(told)
            if found:
                return tuple(found), None, said
            if status is None:
                return None, f"no end within {NCU_S:.0f} s", said
            why = counters.reason(f"{told}\n{out}\n{err}")
            if "metric" not in why.lower():
                break
    return None, why, said


def _ran(command: Sequence[str], limit_s: float) -> tuple[int | None, str, str]:
    """Status (None: ended from here, it took too long) and what it said on both streams."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        return None, "", ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
