"""Candidates per second on a GPU: admission, lowering, checking and screening of a row reduction.

    python benchmarks/gpu_throughput.py [--problem softmax] [--evaluations 300]

Counts from the first child (after seeds and baselines) to the last screening; promotions in between are part
of it. The shares are of that wall time: the clocked blocks (measuring), the rest of what the judge did
(checking, drawing data), and the time in which the judge had nothing to do (waiting).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import populations
from evo.course import SEED
from populations.events import Judged, Promoted, Proposed, Stillborn


def main() -> None:
    """Search, then tell the rate and the shares."""
    parser = argparse.ArgumentParser(description="Candidates per second on this GPU.")
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=3.0)
    options = parser.parse_args()
    path = Path(tempfile.mkdtemp()) / "run"
    command = [sys.executable, "-m", "evo", "run", options.problem, "--target", "cuda", "--seed", "1"]
    command += ["--evaluations", str(options.evaluations), "--minutes", str(options.minutes)]
    subprocess.run([*command, "--run-dir", str(path), "--json"], check=True, stdout=subprocess.DEVNULL)
    run = populations.open(path)
    records = list(run.log.records())
    children = [r for r in records if isinstance(r.event, Proposed) and r.event.operator != SEED]
    first = children[0]
    began = max(r.time for r in records if r.seq < first.seq)
    judged = [r for r in records if isinstance(r.event, Judged) and r.seq > first.seq]
    ended = judged[-1].time
    within = [r for r in records if began <= r.time <= ended and isinstance(r.event, Judged | Promoted)]
    wall = ended - began
    device = sum(r.event.verdict.device_s for r in within)
    clocked = sum(r.event.verdict.clocked_s for r in within)
    known = sum(isinstance(r.event, Stillborn) for r in records)
    print(
        json.dumps(
            {
                "date": datetime.date.today().isoformat(),
                "problem": options.problem,
                "machine": run.calibration.machine if run.calibration else {},
                "cores": len(os.sched_getaffinity(0)),
                "screened": len(judged),
                "duplicates": known,
                "promoted": sum(isinstance(r.event, Promoted) for r in within),
                "wall_s": round(wall, 2),
                "screened_per_s": round(len(judged) / wall, 2),
                "asked_per_s": round((len(judged) + known) / wall, 2),
                "measuring": round(clocked / wall, 3),
                "checking": round((device - clocked) / wall, 3),
                "waiting": round(1 - device / wall, 3),
                "best": run.best.speedup if run.best else None,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
