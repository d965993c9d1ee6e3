"""A process of its own that runs a launch plan, for a profiler that watches it; no candidate's host code.

    python -m fitness.judge.cuda.profiled device                          facts and roofline, a line of JSON
    python -m fitness.judge.cuda.profiled plan PLAN --problem P --case C --seed N

The second run of the plan stands between the profiler's start and stop; the first one loads its kernels.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import torch

from fitness.judge.cuda.rig import CudaRig
from fitness.judge.problem import load
from fitness.judge.rig import KernelDied
from fitness.target import FitnessError

LIMIT_S = 60.0  # told to whoever waits for this process: it is ended from outside


def main() -> int:
    """Do one of the two; 1 where it cannot be done, with the reason as the last line on standard error."""
    words = argparse.ArgumentParser()
    does = words.add_subparsers(dest="do", required=True)
    does.add_parser("device")
    plan = does.add_parser("plan")
    plan.add_argument("plan", type=Path)
    plan.add_argument("--problem", required=True)
    plan.add_argument("--case", required=True)
    plan.add_argument("--seed", type=int, required=True)
    order = words.parse_args()
    torch.set_grad_enabled(False)
    try:
        rig = CudaRig(lambda _: None)
        if order.do == "device":
            print(json.dumps({"facts": rig.facts, "roofline": asdict(rig.roofline)}))
        else:
            _run(rig, order.plan, order.problem, order.case, order.seed)
    except (FitnessError, KernelDied) as why:
        print(why, file=sys.stderr)
        return 1
    return 0


def _run(rig: CudaRig, plan: Path, problem: str, name: str, seed: int) -> None:
    memory = {"cache_bytes": rig.cache_bytes, "memory_bytes": rig.memory_bytes}
    cases = load(problem, seed=seed, target="cuda", **memory).cases
    loaded = next((one for one in cases if one.case.name == name), None)
    if loaded is None:
        raise FitnessError(f"{problem} has no case {name} on this device")
    case = loaded.case
    draw = loaded.draw("profile")
    with closing(rig.sets(case.arguments, len(case.inputs) + len(case.parameters), 1)) as sets:
        for buffer, tensor in zip(sets.inputs(0), draw.inputs + draw.parameters, strict=True):
            buffer.copy_(tensor)
        sets.poison(0, 1)
        with rig.launcher(plan, case, sets) as launcher:
            launcher.block(0, 1, LIMIT_S)
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
            launcher.block(0, 1, LIMIT_S)
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.exit(main())
