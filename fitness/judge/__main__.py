"""The judge: a long-lived trusted process that owns the CPU's clock and never runs a candidate's host code.

It reads one JSON request a line from standard input and answers with one JSON line on the descriptor that was
its standard output; whatever else prints (a problem file, PyTorch) goes to standard error.

    {"do": "open", "problem": …, "seed": …, "folder": …, "sandboxed": …}   → the problem's card
    {"do": "calibrate"}                                                   → a Calibration
    {"do": "screen" | "promote", "library": path}                         → a Verdict
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from fitness import machine
from fitness.card import ProblemCard
from fitness.cpp import build
from fitness.judge import floor
from fitness.judge.bench import Bench
from fitness.judge.cpu_rig import CpuRig
from fitness.judge.gate import judged
from fitness.judge.mutants import strengthen
from fitness.judge.problem import load
from fitness.judge.tracing import traced
from fitness.target import Admission, Built, DeviceError, FitnessError
from fitness.verifier import verifier_hash
from populations.calibration import Calibration
from populations.kernel import Kernel

PR_SET_PDEATHSIG = 1
LEASE_S = 5.0  # a judge whose coordinator was just killed needs a moment to end
CARD = TypeAdapter(ProblemCard)
CALIBRATION = TypeAdapter(Calibration)


class Service:
    """What the judge does for one coordinator. The CPU is leased once a kernel runs."""

    def __init__(self, leases: ExitStack) -> None:
        self._leases = leases
        self._leased = False
        self._bench: Bench | None = None  # None: no problem opened yet

    def answer(self, request: dict[str, Any]) -> Any:
        """The answer to one request, as JSON data.

        Raises:
            FitnessError: the problem or the machine is at fault.
        """
        if request["do"] == "open":
            self._bench = _open(request)
            return CARD.dump_python(traced(self._bench.problem), mode="json")
        if self._bench is None:
            raise DeviceError("the judge was asked before a problem was opened")
        if not self._leased:
            self._leases.enter_context(machine.lease("cpu", patience_s=LEASE_S))
            self._leased = True
        if request["do"] == "calibrate":
            return CALIBRATION.dump_python(self._bench.calibrate(), mode="json")
        ask = self._bench.promote if request["do"] == "promote" else self._bench.screen
        return ask(Path(request["library"])).to_json()


def main() -> None:
    """Serve until standard input ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the coordinator, which then closes our input
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_grad_enabled(False)
    torch.set_num_threads(machine.cores())
    with ExitStack() as leases:
        service = Service(leases)
        for line in sys.stdin:
            try:
                reply = {"answer": service.answer(json.loads(line))}
            except FitnessError as why:
                reply = {"error": type(why).__name__, "message": str(why)}
            answers.write(json.dumps(reply) + "\n")


def _open(request: dict[str, Any]) -> Bench:
    folder = Path(request["folder"])
    cache_bytes = machine.cache_bytes()
    problem = load(request["problem"], seed=request["seed"], cache_bytes=cache_bytes)
    problem = strengthen(
        problem,
        lambda loaded, draw, outputs: judged(loaded, draw, outputs).max_error,
    )

    def build_probe(name: str) -> Path:
        probe = Admission(Kernel(floor.probe_source(name), "cpp"), normal_sha=name)
        built = build(probe, folder, sandboxed=request["sandboxed"])
        if not isinstance(built, Built):
            raise DeviceError(f"the {name} probe does not build here: {built.reason}")
        return built.artifact

    rig = CpuRig(machine.cores(), cache_bytes, sandboxed=request["sandboxed"], build_probe=build_probe)
    facts = {**machine.facts(), "torch": torch.__version__}
    return Bench(problem, rig, machine=facts, verifier=verifier_hash())


if __name__ == "__main__":
    main()
