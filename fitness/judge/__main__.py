"""The judge: a long-lived trusted process that owns a device's clock and never runs a candidate's host code.

It reads one JSON request a line from standard input and answers with one JSON line on the descriptor that was
its standard output; whatever else prints (a problem file, PyTorch) goes to standard error.

    {"do": "open", "target": …, "problem": …, "seed": …, "folder": …, "sandboxed": …}   → the problem's card
    {"do": "outline", "target": …, "problems": […], "whole": …}         → their cards, nothing run
    {"do": "device"}                                                    → facts about the device
    {"do": "calibrate"}                                                 → a Calibration
    {"do": "screen" | "promote", "kernel": path}                        → a Verdict
    {"do": "sample", "kernel": path, "case": …, "inputs": folder, "outputs": folder or null}
    {"do": "hold", "folder": …}                                         → see fitness.judge.specimens

Around a kernel that only the end of this process can stop it says {"kernel_s": limit} and {"kernel_s": null}.
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
from fitness.interpreter.client import Interpreter
from fitness.judge import floor
from fitness.judge.bench import Bench
from fitness.judge.cpu_rig import CpuRig
from fitness.judge.gate import judged
from fitness.judge.interpreted import InterpreterBench, InterpreterRig
from fitness.judge.mutants import strengthen
from fitness.judge.problem import Problem, load, outline
from fitness.judge.rig import Rig
from fitness.judge.specimens import Specimens
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
    """What the judge does for one coordinator. The device is leased once a kernel runs.

    Args:
        leases: hold until the judge ends.
        say: tells the coordinator that a kernel runs, and for how long at most.
    """

    def __init__(self, leases: ExitStack, say: Callable[[dict[str, Any]], None]) -> None:
        self._leases = leases
        self._say = say
        self._leased = False
        self._target = "cpu"
        self._rig: Rig | None = None  # None: no problem opened yet
        self._bench: Bench | InterpreterBench | None = None
        self._specimens: Specimens | None = None

    @property
    def lost(self) -> bool:
        """Whether the device can no longer be used from this process."""
        return self._rig is not None and self._rig.lost

    def answer(self, request: dict[str, Any]) -> Any:
        """The answer to one request, as JSON data.

        Raises:
            FitnessError: the problem or the machine is at fault.
        """
        if request["do"] == "open":
            self._target = request.get("target", "cpu")
            self._rig, self._bench = _opened(request, self._target, self._leases, self._say)
            self._specimens = Specimens(self._bench.problem, self._rig)
            return CARD.dump_python(traced(self._bench.problem), mode="json")
        if request["do"] == "outline":
            how = {"target": request["target"], "whole": request["whole"]}
            return [CARD.dump_python(outline(p, **how), mode="json") for p in request["problems"]]
        if self._bench is None or self._rig is None or self._specimens is None:
            raise DeviceError("the judge was asked before a problem was opened")
        if request["do"] == "device":
            return self._rig.facts
        if not self._leased and self._rig.policies:
            self._leases.enter_context(machine.lease(self._target, patience_s=LEASE_S))
            self._leased = True
        if request["do"] == "calibrate":
            return CALIBRATION.dump_python(self._bench.calibrate(), mode="json")
        if request["do"] == "sample":
            return self._specimens.sample(**{key: value for key, value in request.items() if key != "do"})
        if request["do"] == "hold":
            return self._specimens.hold(request["folder"])
        ask = self._bench.promote if request["do"] == "promote" else self._bench.screen
        return ask(Path(request["kernel"])).to_json()


def main() -> None:
    """Serve until standard input ends, or the device is lost."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the coordinator, which then closes our input
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_grad_enabled(False)
    torch.set_num_threads(machine.cores())

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")

    with ExitStack() as leases:
        service = Service(leases, say)
        for line in sys.stdin:
            try:
                answer = service.answer(json.loads(line))
                say({"answer": answer, "ended": service.lost})
            except FitnessError as why:
                say({"error": type(why).__name__, "message": str(why)})
            if service.lost:
                os._exit(0)  # an orderly end would ask the lost device to free its memory


def _opened(
    request: dict[str, Any], target: str, leases: ExitStack, say: Callable[[dict[str, Any]], None]
) -> tuple[Rig, Bench | InterpreterBench]:
    if target == "interpreter":  # kernels for a GPU, where there is none
        interpreter = leases.enter_context(Interpreter(Path(request["folder"])))
        rig = InterpreterRig(interpreter, sandboxed=request["sandboxed"])
        return rig, InterpreterBench(_loaded(request, "cuda", rig), rig, verifier=verifier_hash())
    timed = _cpu_rig(request) if target == "cpu" else _cuda_rig(say)
    problem = _loaded(request, target, timed)
    return timed, Bench(problem, timed, machine=timed.facts, verifier=verifier_hash())


def _loaded(request: dict[str, Any], target: str, rig: Rig) -> Problem:
    """The problem in this target's sizes, its checking inputs strengthened."""
    problem = load(
        request["problem"],
        seed=request["seed"],
        cache_bytes=rig.cache_bytes,
        memory_bytes=rig.memory_bytes,
        target=target,
    )
    return strengthen(
        problem,
        lambda loaded, draw, outputs: judged(loaded, draw, outputs).max_error,
    )


def _cpu_rig(request: dict[str, Any]) -> Rig:
    folder = Path(request["folder"])

    def build_probe(name: str) -> Path:
        probe = Admission(Kernel(floor.probe_source(name), "cpp"), normal_sha=name)
        built = build(probe, folder, sandboxed=request["sandboxed"])
        if not isinstance(built, Built):
            raise DeviceError(f"the {name} probe does not build here: {built.reason}")
        return built.artifact

    return CpuRig(machine.cores(), sandboxed=request["sandboxed"], build_probe=build_probe)


def _cuda_rig(say: Callable[[dict[str, Any]], None]) -> Rig:
    from fitness.judge.cuda.rig import CudaRig  # here: a machine without a GPU may lack Triton

    return CudaRig(lambda limit_s: say({"kernel_s": limit_s}))


if __name__ == "__main__":
    main()
