"""Starts the process that runs an exported file, and reads what it left: a report, or why there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from fitness import native
from fitness.exported.jobs import ANSWER, ANSWER_BYTES, BEGUN, EXPORT_ANSWER, LOG, Fault, Report
from fitness.lowering.children import CPU_SIGNALS, read_small
from fitness.lowering.confinement import BROKEN, TIMED_OUT
from fitness.target import DeviceError

WALL_S, CPU_S = 150.0, 140
PATIENCE_S = 30.0  # beyond the child's own limit
ROOM_BYTES = 256 << 20  # of a file, beside the outputs: compiled kernels, a driver's shared memory
LOG_BYTES = 1 << 16
SETTINGS = {  # as those that the plan was compiled with
    "TRITON_DISABLE_LINE_INFO": "1",
    "TRITON_DEFAULT_FP_FUSION": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def reported(
    scratch: Path, environment: Mapping[str, str], *, output_bytes: int, sandboxed: bool
) -> tuple[Report | Fault, str]:
    """What the child reports, and what it printed.

    Args:
        scratch: its folder, with the job and the file in it.
        environment: all that it gets to see, beside settings of its own.
        output_bytes: of the largest output that it is asked for.
        sandboxed: False only on the user's word.

    Raises:
        DeviceError: the sandbox is broken.
    """
    command = [sys.executable, "-P", "-m", "fitness.exported", "--scratch", str(scratch)]
    command += ["--library", str(native.library("enter")), "--wall", str(WALL_S), "--cpu", str(CPU_S)]
    command += ["--file-bytes", str(output_bytes + ROOM_BYTES)]
    command += [] if sandboxed else ["--unsandboxed"]
    seen = {**environment, **SETTINGS, "HOME": str(scratch), "TMPDIR": str(scratch)}
    with subprocess.Popen(
        command,
        env=seen,
        start_new_session=True,  # a Ctrl-C in the terminal is the coordinator's to handle
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            _, early = child.communicate(timeout=WALL_S + PATIENCE_S)
        except subprocess.TimeoutExpired:
            return Fault("the process around the exported file does not end", machine=True), ""
        finally:
            child.kill()
    said = (early + read_small(scratch / LOG, LOG_BYTES)).decode(errors="replace").strip()
    return _read(child.returncode, scratch, said), said


def _read(status: int, scratch: Path, said: str) -> Report | Fault:
    last = said.splitlines()[-1][:300] if said else f"status {status}"
    if status == BROKEN:
        raise DeviceError(f"the sandbox of exported files failed: {last}")
    if status != 0 and not (scratch / BEGUN).exists():
        return Fault(f"the sandbox did not come as far as the exported file: {last}", machine=True)
    if status in CPU_SIGNALS:
        return Fault(f"the exported file used more than {CPU_S} s of processor time")
    if status == TIMED_OUT:
        return Fault(f"the exported file does not end within {WALL_S:g} s")
    if status != 0:
        return Fault(f"the process that ran the exported file ended: {last}")
    try:
        return EXPORT_ANSWER.validate_json(read_small(scratch / ANSWER, ANSWER_BYTES))
    except ValidationError as why:
        return Fault(f"the exported file left no report that can be read: {why.errors()[0]['msg']}")
