"""The judge as a child process: requests and answers, one JSON line each, and what its silence means."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fitness import native
from fitness.card import Case, ProblemCard
from fitness.target import DeviceError, ProblemError
from populations.verdict import Outcome

SEARCH_HELD_OUT = 4  # held-out cases that a search shows to every kernel; promotions show all
OPEN_S, CALIBRATE_S, JUDGE_S = 180.0, 900.0, 600.0
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "PYTHONPATH", "VIRTUAL_ENV")


class KernelEndedJudge(Exception):
    """A kernel took the judge with it: it hung, or the device's fault left the process unusable."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class Judge:
    """The judge's process.

    Args:
        log: file for what it prints.
        environment: all it gets to see.
    """

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                # -P: a random.py in the current folder is not Python's random.
                [sys.executable, "-P", "-m", "fitness.judge"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(environment),
                start_new_session=True,  # a Ctrl-C in the terminal is the coordinator's to handle
            )
        self._pending = b""
        self._problem: str | None = None  # that it was asked to open
        self.ended = False  # it said that its last answer was the last one

    def ask(self, request: dict[str, Any], limit_s: float) -> Any:
        """The judge's answer.

        Before a kernel runs where only the death of the process can stop it, the judge says how long that may
        take; a judge that is silent for longer is ended.

        Raises:
            ProblemError, DeviceError: what the judge said, or that it died or did not answer in time.
            KernelEndedJudge: the same while a kernel ran.
        """
        assert self._process.stdin is not None
        self._problem = request.get("problem", self._problem)
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):  # it is dead; or it was, when last asked
            raise self._died() from None
        last = time.monotonic() + limit_s
        kernel_s: float | None = None  # a kernel runs, for at most so long; None: none does
        while True:
            deadline = last if kernel_s is None else min(last, time.monotonic() + kernel_s)
            reply = self._reply(deadline, limit_s, kernel_s)
            if "kernel_s" not in reply:
                break
            kernel_s = reply["kernel_s"]
        if "error" in reply:
            kind = ProblemError if reply["error"] == "ProblemError" else DeviceError
            raise kind(reply["message"])
        self.ended = bool(reply.get("ended"))
        return reply["answer"]

    def close(self) -> None:
        """End the process and its children."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # a request that the dead judge never read

    def _reply(self, deadline: float, limit_s: float, kernel_s: float | None) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.close()
                if kernel_s is not None:
                    raise KernelEndedJudge(Outcome.TIMED_OUT, f"no end within {kernel_s:.3g} s")
                raise DeviceError(f"the judge did not answer within {limit_s:.0f} s (its log: {self._log})")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                died = self._died()
                if kernel_s is not None:
                    raise KernelEndedJudge(Outcome.CRASHED, "ended the process that ran it")
                raise died
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _died(self) -> DeviceError:
        self.close()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        status = self._process.returncode
        said = f": {lines[-1]}" if lines else ""
        if self._problem is not None and status >= 0:  # by itself, not by a signal
            said += f"; if {self._problem} ends the process, take that out: a problem file may not exit"
        where = f" (its log: {self._log})" if lines else ""
        return DeviceError(f"the judge ended with status {status}{said}{where}")


def passed_on() -> dict[str, str]:
    """The part of this process's environment that a judge may see: no secrets."""
    return native.environment(PASSED_ON)


def search_cases(card: ProblemCard) -> tuple[Case, ...]:
    """The cases that a kernel meets in a search, as the gate takes them."""
    declared = [case for case in card.cases if not case.derived] or list(card.cases)
    hidden = [case for case in declared if case.held_out][:SEARCH_HELD_OUT]
    return tuple(case for case in declared if not case.held_out or case in hidden)
