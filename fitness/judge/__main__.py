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
from collections.abc import Callable
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
from fitness.judge.gate import judged
from fitness.judge.mutants import strengthen
from fitness.judge.problem import load
from fitness.target import Admission, Built, DeviceError, FitnessError
from fitness.verifier import verifier_hash
from populations.calibration import Calibration
from populations.kernel import Kernel

PR_SET_PDEATHSIG = 1
CARD = TypeAdapter(ProblemCard)
CALIBRATION = TypeAdapter(Calibration)


def main() -> None:
    """Serve until standard input ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the coordinator, which then closes our input
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_grad_enabled(False)
    torch.set_num_threads(machine.cores())

    with ExitStack() as leases:
        bench: Bench | None = None
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if request["do"] == "open":
                    leases.enter_context(machine.lease("cpu"))
                    bench = _open(request)
                    answer = CARD.dump_python(bench.problem.card, mode="json")
                elif bench is None:
                    raise DeviceError("the judge was asked before a problem was opened")
                elif request["do"] == "calibrate":
                    answer = CALIBRATION.dump_python(bench.calibrate(), mode="json")
                else:
                    ask: Callable[[Path], Any] = bench.promote if request["do"] == "promote" else bench.screen
                    answer = ask(Path(request["library"])).to_json()
            except FitnessError as why:
                answers.write(json.dumps({"error": type(why).__name__, "message": str(why)}) + "\n")
            else:
                answers.write(json.dumps({"answer": answer}) + "\n")


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

    return Bench(
        problem,
        cores=machine.cores(),
        cache_bytes=cache_bytes,
        sandboxed=request["sandboxed"],
        build_probe=build_probe,
        machine={**machine.facts(), "torch": torch.__version__},
        verifier=verifier_hash(),
    )


if __name__ == "__main__":
    main()
