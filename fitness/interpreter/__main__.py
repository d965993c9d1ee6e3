"""The interpreter's parent process: imports everything once, then forks for each plan it is sent.

Standard input is a socket. A message on it carries four descriptors: a channel to the judge, the request as
JSON, and the argument sets' files of inputs and outputs. The fork becomes two processes: a watcher, which
ends the other one when the judge hangs up and tells how it ended, and process 1 of a new namespace, which
gives up its rights and runs the plan, set by set, as the judge asks over the channel.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import mmap
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from fitness.interpreter.execution import Execution, reply_to
from fitness.interpreter.language import install

PACKET = 1 << 16
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until standard input ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # watchers are reaped by the system
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    native = ctypes.CDLL(sys.argv[1])
    install()
    _wake_torch()
    gc.freeze()
    requests = socket.socket(fileno=os.dup(0))
    requests.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, PACKET, 4)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            _watch(native, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _wake_torch() -> None:
    """Copy and cast once: torch then looks at the processor's features, which a confined child cannot."""
    kinds = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.float8_e4m3fn)
    for source in kinds:
        for target in kinds:
            torch.ones(4, 4).to(source).t().contiguous().to(target)
    torch.special.erf(torch.ones(64, dtype=torch.float64))


def _watch(native: ctypes.CDLL, channel: int, request: int, inputs: int, outputs: int) -> NoReturn:
    """Fork the process that runs the plan; end it when the judge hangs up."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    order = json.loads(os.pread(request, os.fstat(request).st_size, 0))
    native.separate(int(order["sandboxed"]))
    child = os.fork()
    if child == 0:
        _serve(native, order, channel, inputs, outputs)
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP)
    poll.register(os.pidfd_open(child), select.POLLIN)
    poll.poll()
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL) if _hung_up(channel) else None
    _, status = os.waitpid(child, 0)
    ended = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"status": os.WEXITSTATUS(status)}
    with contextlib.suppress(OSError):
        socket.socket(fileno=channel).send(json.dumps({"ended": ended}).encode())
    os._exit(0)


def _hung_up(channel: int) -> bool:
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP)
    return bool(poll.poll(0))


def _serve(native: ctypes.CDLL, order: dict[str, Any], channel: int, inputs: int, outputs: int) -> NoReturn:
    """Give up all rights, load the module, answer the judge."""
    read_only = mmap.mmap(inputs, 0, prot=mmap.PROT_READ)
    written = mmap.mmap(outputs, 0)
    link = _confine(native, order, channel)
    execution: Execution | None = None
    while packet := link.recv(PACKET):
        number = json.loads(packet)["set"]
        try:
            if execution is None:
                execution = Execution(order["module"], order["kernels"], order["case"])
            given = [_at(read_only, slot, number * order["strides"][0]) for slot in order["inputs"]]
            wanted = [_tensor(written, slot, number * order["strides"][1]) for slot in order["outputs"]]
            reply = execution.run(given, wanted)
        except BaseException as error:
            reply = reply_to(error)
        link.send(json.dumps({"set": number, **reply}).encode())
    os._exit(0)


def _confine(native: ctypes.CDLL, order: dict[str, Any], channel: int) -> socket.socket:
    """Enter the sandbox; of all descriptors the channel alone stays."""
    packages = (Path(package.__file__ or "").parents[1] for package in (torch, np))
    readable = [str(path).encode() for path in {Path(sys.prefix), Path(sys.base_prefix), *packages}]
    reads = (ctypes.c_char_p * (len(readable) + 1))(*readable, None)
    cpu, memory = ctypes.c_ulong(order["cpu_s"]), ctypes.c_ulong(order["memory"])
    alone, strict = 1, int(order["sandboxed"])
    native.enter(os.fsencode(order["scratch"]), reads, channel, cpu, memory, alone, strict)
    link = socket.socket(fileno=os.dup(1))
    null = os.open("/dev/null", os.O_WRONLY)
    for stream in (1, 2):  # what a kernel prints goes nowhere
        os.dup2(null, stream)
    return link


def _at(memory: mmap.mmap, slot: dict[str, Any], base: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(memory, dtype=np.uint8, count=slot["bytes"], offset=base + slot["at"])


def _tensor(memory: mmap.mmap, slot: dict[str, Any], base: int) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, slot["dtype"])
    if slot["bytes"] == 0:
        return torch.empty(slot["shape"], dtype=dtype)
    count = slot["bytes"] // dtype.itemsize
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=base + slot["at"])
    return flat.view(slot["shape"])


if __name__ == "__main__":
    main()
