"""The process that runs an exported file: ``python -P -m fitness.exported --scratch FOLDER …``.

The job lies in the folder, the file beside it; the answer is left there. Two processes: this one makes the
namespaces and watches the clock, its child imports torch and Triton, gives up its rights, and only then meets
the file and the device.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from fitness.exported.jobs import ANSWER, EXPORT, JOB, LOG
from fitness.lowering.confinement import Confinement, Limits

PR_SET_PDEATHSIG = 1
CRASHED = 1
FOLDERS = {"HOME": "", "TMPDIR": "", "TRITON_CACHE_DIR": "cache", "XDG_CACHE_HOME": "cache"}


def main() -> None:
    """Run one job; the exit status is the child's, or that of ``Confinement.watch``."""
    words = argparse.ArgumentParser()
    words.add_argument("--scratch", type=Path, required=True)
    words.add_argument("--library", type=Path, required=True)
    words.add_argument("--wall", type=float, required=True)
    words.add_argument("--cpu", type=int, required=True)
    words.add_argument("--file-bytes", type=int, required=True)
    words.add_argument("--unsandboxed", action="store_true")
    order = words.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    limits = Limits(wall=order.wall, cpu=order.cpu)
    confinement = Confinement(order.library, strict=not order.unsandboxed, limits=limits)
    log = os.open(order.scratch / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.dup2(log, 2)
    if not order.unsandboxed:
        confinement.separate()
    child = os.fork()
    if child == 0:
        _child(None if order.unsandboxed else confinement, order.scratch, log, order.file_bytes)
    sys.exit(confinement.watch(child))


def _child(confinement: Confinement | None, scratch: Path, log: int, file_bytes: int) -> None:
    """Enter the sandbox (None: the user wants none), run the file, leave the answer. Never returns."""
    code = CRASHED
    try:
        os.setpgid(0, 0)
        from fitness.exported.running import report  # torch and Triton, while everything can still be read

        if confinement is not None:
            confinement.enter_with_device(scratch, log, file_bytes=file_bytes)
        os.chdir(scratch)
        os.environ.update({name: str(scratch / below) for name, below in FOLDERS.items()})
        tempfile.tempdir = str(scratch)
        answer = report(scratch, EXPORT.validate_json((scratch / JOB).read_bytes()))
        (scratch / ANSWER).write_text(json.dumps(answer))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()  # into the log
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
