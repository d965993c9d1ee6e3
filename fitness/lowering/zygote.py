"""A process without secrets that has imported what its children need; it forks a confined child for each job.

    {"id": 7, "scratch": folder, "jobs": ["0", "3"], "file": "job.json"}    one a line on standard input
    7 0                                          id and the child's status, on standard output

There are two: one that traces (torch and Triton) and one that compiles (Triton alone). A job is a file in
``scratch/name``. A child takes one that no other took, by giving its file another name; as soon as it has an
answer it leaves that there, in ``answer.json``, and takes the next. Between the zygote and a child stands a
watcher, which makes the namespaces and keeps the time.
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
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fitness.card import Case, TensorSpec
from fitness.lowering.confinement import Confinement, Limits
from fitness.lowering.facts import CARDS, Facts
from fitness.lowering.jobs import COMPILE, TRACE, answer_file, log_file, taken_file
from fitness.plan import KernelSpec

PR_SET_PDEATHSIG = 1
CRASHED = 1
DRAFT = "answer.draft"
NICE = 10  # builds fill every core, and a judge that waits for one keeps the device waiting
FOLDERS = {"HOME": "", "TMPDIR": "", "TRITON_CACHE_DIR": "cache", "XDG_CACHE_HOME": "cache"}
SETTINGS = {
    "TRITON_DISABLE_LINE_INFO": "1",  # else a comment changes the binary
    "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_DUMP_PTXAS_LOG": "1",  # registers and spills are read from it
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
}
WARM = "import triton as _triton\n\n@_triton.jit\ndef warm(x, n):\n    _triton.language.store(x, n)\n"
WARM_HOST = (
    "import torch\ndef kernel_function(x):\n    y = torch.empty_like(x)\n    warm[(1,)](y, 5)\n    return y\n"
)
WARM_TENSOR = TensorSpec("x", (16,), "float32")
WARM_CASE = Case("warm", {}, None, False, False, True, (WARM_TENSOR,), (), (WARM_TENSOR,), 0)


@dataclass(frozen=True)
class Order:
    """What a child is for: jobs below ``scratch``, as files of one name."""

    id: int
    scratch: str
    jobs: list[str]
    file: str

    @property
    def folders(self) -> list[Path]:
        """Of the jobs."""
        return [Path(self.scratch, name) for name in self.jobs]


Work = Callable[[Path, bytes], dict[str, Any]]  # (scratch folder, job) → answer


def main() -> None:
    """Serve until standard input ends, as it does when the client dies."""
    words = argparse.ArgumentParser()
    words.add_argument("does", choices=["trace", "compile"])
    words.add_argument("--library", type=Path, required=True)
    words.add_argument("--arch", required=True)
    words.add_argument("--multiprocessors", type=int)
    words.add_argument("--unsandboxed", action="store_true")
    words.add_argument("--wall", type=float, default=Limits.wall)
    words.add_argument("--cpu", type=int, default=Limits.cpu)
    order = words.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    os.environ.update(SETTINGS)
    warnings.simplefilter("ignore")
    limits = Limits(wall=order.wall, cpu=order.cpu)
    confinement = Confinement(order.library, strict=not order.unsandboxed, limits=limits)
    tracing = order.does == "trace"
    facts = CARDS[order.arch]
    if order.multiprocessors is not None:
        facts = replace(facts, multiprocessors=order.multiprocessors)
    work = (_tracing if tracing else _compiling)(facts)
    gc.collect()
    gc.freeze()
    gc.disable()
    os.write(1, b"ready\n")
    _serve(lambda order: _watcher(confinement, work, order, alone=tracing))
    os._exit(0)  # nothing of torch and Triton needs tidying


def _tracing(facts: Facts) -> Work:
    """A kernel traced, so that children find all of torch's and Triton's modules imported."""
    import torch

    from fitness.lowering import host
    from fitness.lowering.trace import trace

    torch.set_num_threads(1)
    host.rehearse()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.py"
        source.write_text(WARM + WARM_HOST)
        answer = trace(source, "kernel_function", facts, [WARM_CASE], {})
    if "cases" not in answer:
        sys.exit(f"Triton cannot be traced for {facts.arch}: {answer['reason']}")
    del sys.modules["kernel"]

    def work(scratch: Path, text: bytes) -> dict[str, Any]:
        job = TRACE.validate_json(text)
        return trace(scratch / "kernel.py", job.entry, facts, job.cases, job.asked)

    return work


def _compiling(facts: Facts) -> Work:
    """A kernel compiled, so that children find all of the compiler's modules imported."""
    from fitness.lowering.compiling import compile_one

    spec = KernelSpec("warm", ("x", "n"), {"x": "*fp32", "n": "i32"}, (), (), {})
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        answer = compile_one(Path(folder), WARM, {"triton.language.store": 5}, spec, facts)
    if "binary" not in answer:
        sys.exit(f"Triton cannot compile for {facts.arch}: {answer['reason']}")
    del sys.modules["device"]

    def work(scratch: Path, text: bytes) -> dict[str, Any]:
        job = COMPILE.validate_json(text)
        return compile_one(scratch, job.text, job.dotted, job.spec, facts)

    return work


def _serve(watcher: Callable[[Order], None]) -> None:
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
                order = Order(**json.loads(line))
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    watcher(order)
                running[child] = order.id


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


def _watcher(confinement: Confinement, work: Work, order: Order, *, alone: bool) -> None:
    """Make the namespaces, fork the worker, wait for it. Never returns."""
    code = CRASHED
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        log = os.open(Path(order.scratch, log_file(order.id)), flags, 0o600)
        os.dup2(log, 2)
        confinement.separate()
        child = os.fork()
        if child == 0:
            _worker(confinement, work, order, log, alone=alone)
        code = confinement.watch(child, [folder / taken_file(order.id) for folder in order.folders])
    finally:
        os._exit(code)


def _worker(confinement: Confinement, work: Work, order: Order, log: int, *, alone: bool) -> None:
    """Enter the sandbox, do jobs, leave answers. Never returns."""
    code = CRASHED
    try:
        os.setpgid(0, 0)
        confinement.enter(Path(order.scratch), log, alone=alone, jobs=len(order.jobs))
        for folder in order.folders:
            taken = folder / taken_file(order.id)
            try:
                (folder / order.file).rename(taken)
            except FileNotFoundError:
                continue  # another child took it
            confinement.next_job()
            answer = _answer(work, folder, taken.read_bytes())
            if "reason" in answer or time.process_time() > confinement.fresh_s:
                break
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()  # into the log; it reaches no user
    finally:
        os._exit(code)


def _answer(work: Work, folder: Path, job: bytes) -> dict[str, Any]:
    """Do a job in a folder, and leave the answer there: whole or not at all."""
    os.chdir(folder)
    os.environ.update({name: str(folder / below) for name, below in FOLDERS.items()})
    tempfile.tempdir = str(folder)
    answer = work(folder, job)
    (folder / DRAFT).write_text(json.dumps(answer))
    (folder / DRAFT).replace(folder / answer_file)
    return answer


if __name__ == "__main__":
    main()
