"""The judge's side of the interpreter: starts its process and sends it plans. Imports no torch, no triton."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from fitness import native
from fitness.target import DeviceError

START_S = 120.0  # importing torch and triton on a busy machine
PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


class Interpreter:
    """The process that has everything imported and forks for each plan. A context manager.

    Args:
        folder: home and temporary folder of the process.

    Raises:
        DeviceError: there is no gcc.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "interpreter.log"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fitness.interpreter", str(native.library("enter"))],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        self._requests = ours
        self._ready = False  # it imports while we go on

    @property
    def pid(self) -> int:
        """Its process id; children of it are plans that run."""
        return self._process.pid

    def fork(self, order: dict[str, Any], inputs: int, outputs: int) -> socket.socket:
        """A confined child for one case of a plan; returns the channel to it.

        Args:
            order: what it is to know (see ``__main__``).
            inputs, outputs: descriptors of the argument sets' files.

        Raises:
            DeviceError: the process is gone, or never started, for example because triton is not installed.
        """
        self._await_ready()
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as ours:
            request = os.memfd_create("plan", os.MFD_CLOEXEC)
            ours.callback(os.close, request)
            os.write(request, json.dumps(order).encode())
            try:
                socket.send_fds(self._requests, [b"run"], [theirs.fileno(), request, inputs, outputs])
            except OSError as why:
                channel.close()
                raise DeviceError(f"the interpreter is gone ({why}; its log: {self._log})") from None
        return channel

    def close(self) -> None:
        """End the process and its children."""
        self._requests.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _await_ready(self) -> None:
        if self._ready:
            return
        if not select.select([self._requests], [], [], START_S)[0] or self._requests.recv(64) != b"ready":
            self.close()
            lines = self._log.read_text(errors="replace").strip().splitlines()
            raise DeviceError(f"the interpreter does not start: {lines[-1] if lines else 'no message'}")
        self._ready = True

    def _environment(self) -> dict[str, str]:
        folder = str(self._folder.absolute())
        return {
            **native.environment(PASSED_ON),
            "HOME": folder,
            "TMPDIR": folder,
            "TRITON_CACHE_DIR": folder,
            "TRITON_INTERPRET": "1",
            "TRITON_DEFAULT_FP_FUSION": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
