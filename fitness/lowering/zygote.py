"""A process without secrets that has imported torch and Triton and forks a confined child for each job.

    {"id": 7, "do": "trace" | "compile", "scratch": folder}   one a line on standard input
    7 0                                                       id and the child's status, on standard output

The job lies in ``scratch/job.json``; the child leaves its answer in ``scratch/answer.json``. Between the
zygote and that child stands a watcher, which makes the namespaces and keeps the time.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import select
import signal
import sys
import tempfile
import warnings
from pathlib import Path

PR_SET_PDEATHSIG = 1
CRASHED = 1
FOLDERS = {"HOME": "", "TMPDIR": "", "TRITON_CACHE_DIR": "cache", "XDG_CACHE_HOME": "cache"}
SETTINGS = {
    "TRITON_DISABLE_LINE_INFO": "1",  # else a comment changes the binary
    "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_DUMP_PTXAS_LOG": "1",  # registers and spills are read from it
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
}
os.environ.update(SETTINGS)
warnings.simplefilter("ignore")

import torch  # noqa: E402

from fitness.lowering import compiling, host  # noqa: E402
from fitness.lowering.confinement import Confinement, Limits  # noqa: E402
from fitness.lowering.facts import CARDS, Facts  # noqa: E402
from fitness.lowering.jobs import COMPILE, TRACE, CompileJob, TraceJob, answer_file, job_file  # noqa: E402
from fitness.lowering.trace import trace  # noqa: E402
from fitness.plan import KernelSpec  # noqa: E402

WARM = "import triton as _triton\n\n@_triton.jit\ndef warm(x, n):\n    _triton.language.store(x, n)\n"


def main() -> None:
    """Serve until standard input ends, as it does when the client dies."""
    words = argparse.ArgumentParser()
    words.add_argument("--library", type=Path, required=True)
    words.add_argument("--arch", required=True)
    words.add_argument("--unsandboxed", action="store_true")
    words.add_argument("--wall", type=float, default=Limits.wall)
    words.add_argument("--cpu", type=int, default=Limits.cpu)
    order = words.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    facts = CARDS[order.arch]
    limits = Limits(wall=order.wall, cpu=order.cpu)
    confinement = Confinement(order.library, strict=not order.unsandboxed, limits=limits)
    _warm(facts)
    gc.collect()
    gc.freeze()
    gc.disable()
    os.write(1, b"ready\n")
    _serve(confinement, facts)
    os._exit(0)  # nothing of torch and Triton needs tidying


def _warm(facts: Facts) -> None:
    """Compile a kernel, so that children find all of the compiler's modules imported."""
    spec = KernelSpec("warm", ("x", "n"), {"x": "*fp32", "n": "i32"}, (), (), {})
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        answer = compiling.compile_all(Path(folder), WARM, {"triton.language.store": 5}, [spec], facts)
    if "binaries" not in answer:
        sys.exit(f"Triton cannot compile for {facts.arch}: {answer['reason']}")
    del sys.modules["device"]
    host.rehearse()


def _serve(confinement: Confinement, facts: Facts) -> None:
    """Fork for each line; say how each child ended. One wake-up pipe carries the deaths of children."""
    heard, said = os.pipe()
    os.set_blocking(said, False)
    os.set_blocking(heard, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(said)
    running: dict[int, int] = {}
    pending = b""
    while True:
        ready, _, _ = select.select([0, heard], [], [])
        if heard in ready:
            os.read(heard, 4096)
            _report(running)
        if 0 in ready:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                order = json.loads(line)
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _watcher(confinement, facts, order["do"], Path(order["scratch"]))
                running[child] = order["id"]


def _report(running: dict[int, int]) -> None:
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if child == 0:
            return
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        os.write(1, f"{running.pop(child)} {code}\n".encode())


def _watcher(confinement: Confinement, facts: Facts, do: str, scratch: Path) -> None:
    """Make the namespaces, fork the worker, wait for it. Never returns."""
    code = CRASHED
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        log = os.open(scratch / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.dup2(log, 2)
        confinement.separate()
        child = os.fork()
        if child == 0:
            _worker(confinement, facts, do, scratch, log)
        code = confinement.watch(child)
    finally:
        os._exit(code)


def _worker(confinement: Confinement, facts: Facts, do: str, scratch: Path, log: int) -> None:
    """Enter the sandbox, do the job, leave the answer. Never returns."""
    code = CRASHED
    try:
        os.setpgid(0, 0)
        confinement.enter(scratch, log, alone=do == "trace")
        os.environ.update({name: str(scratch / below) for name, below in FOLDERS.items()})
        tempfile.tempdir = str(scratch)
        text = (scratch / job_file).read_bytes()
        if do == "trace":
            job: TraceJob = TRACE.validate_json(text)
            answer = trace(scratch / "kernel.py", job.entry, facts, job.cases, job.asked)
        else:
            order: CompileJob = COMPILE.validate_json(text)
            answer = compiling.compile_all(scratch, order.text, order.dotted, list(order.specs), facts)
        (scratch / answer_file).write_text(json.dumps(answer))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()  # into the log; it reaches no user
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
