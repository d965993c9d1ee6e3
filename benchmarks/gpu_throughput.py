"""Candidates per second on a GPU: admission, lowering, checking and screening of a row reduction.

    python benchmarks/gpu_throughput.py [--problem softmax] [--evaluations 300] [--minutes 3]

Counts from the first child (after seeds and baselines) to the last screening; promotions in between are part
of it. The shares are of that wall time and add up to one: the clocked blocks of screenings (``measuring``),
the rest of what the judge did for them (``checking``: gate, drawing data, comparing), ``promoting``, and the
time in which the judge had nothing to do (``waiting``: for builds, or for this process). ``own_cpu`` and
``children_cpu`` are processor seconds per second of wall time over the whole run: of this process, whose one
interpreter makes the asks and reads the answers, and of lowering and judge, opening and baselines included.
``asks`` says how the asks ended; ``seconds`` how long the parts took, as quartiles.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import populations
from evo import session
from evo.asking import KNOWN_SOURCE
from evo.coordinator import SAME_CODE, SAME_WORK
from evo.course import SEED
from evo.progress import Silent
from evo.settings import settings
from populations.events import Judged, Promoted, Proposed, Stillborn
from populations.log import Record

ENDS = (KNOWN_SOURCE, SAME_CODE, SAME_WORK, "no other numbers to try", "no operator applies")


def main() -> None:
    """Search, then tell the rate and the shares."""
    parser = argparse.ArgumentParser(description="Candidates per second on this GPU.")
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--keep", type=Path, help="a folder for the run; else a temporary one")
    options = parser.parse_args()
    path = options.keep or Path(tempfile.mkdtemp()) / "run"
    chosen = settings(evaluations=options.evaluations, minutes=options.minutes, seed=1)
    began = time.monotonic()
    session.start(options.problem, chosen, Silent(), target="cuda", run_dir=path)
    whole_s = time.monotonic() - began
    run = populations.open(path)
    report = {
        "date": datetime.date.today().isoformat(),
        "problem": options.problem,
        "machine": run.calibration.machine if run.calibration else {},
        "cores": len(os.sched_getaffinity(0)),
        **counted(list(run.log.records())),
        "run_s": round(whole_s, 2),
        "own_cpu": round(_cpu_s(resource.RUSAGE_SELF) / whole_s, 3),
        "children_cpu": round(_cpu_s(resource.RUSAGE_CHILDREN) / whole_s, 3),
        "best": run.best.speedup if run.best else None,
        "run": str(path),
    }
    print(json.dumps(report, indent=1))


def counted(records: Sequence[Record]) -> dict[str, object]:
    """Rates, shares and counts of a run's events, from its first child to its last screening."""
    births = [r for r in records if isinstance(r.event, Proposed)]
    first = next(r for r in births if r.event.operator != SEED)
    judged = [r for r in records if isinstance(r.event, Judged) and r.seq > first.seq]
    began = max(r.time for r in records if r.seq < first.seq)
    ended = judged[-1].time
    wall = ended - began
    within = [r.event for r in records if first.seq <= r.seq and r.time <= ended]
    screened = [e.verdict for e in within if isinstance(e, Judged)]
    promoted = [e.verdict for e in within if isinstance(e, Promoted)]
    stillborn = Counter(_end(e) for e in within if isinstance(e, Stillborn))
    asked = sum(stillborn.values()) + len(screened)
    early = stillborn.total() - stillborn[SAME_CODE] - stillborn[SAME_WORK]
    device = sum(v.device_s for v in screened)
    clocked = sum(v.clocked_s for v in screened)
    promoting = sum(v.device_s for v in promoted)
    return {
        "wall_s": round(wall, 2),
        "screened": len(screened),
        "screened_per_s": round(len(screened) / wall, 2),
        "asked_per_s": round(asked / wall, 2),
        "admitted_per_s": round((asked - early) / wall, 2),
        "asks": {"judged": len(screened), **dict(stillborn.most_common())},
        "outcomes": dict(Counter(str(v.status) for v in screened).most_common()),
        "promoted": len(promoted),
        "measuring": round(clocked / wall, 3),
        "checking": round((device - clocked) / wall, 3),
        "promoting": round(promoting / wall, 3),
        "waiting": round(1 - (device + promoting) / wall, 3),
        "seconds": {
            "screening": _quartiles([v.device_s for v in screened if v.device_s]),
            "promotion": _quartiles([v.device_s for v in promoted]),
        },
    }


def _end(event: Stillborn) -> str:
    return next((end for end in ENDS if event.reason.startswith(end)), "refused")


def _quartiles(seconds: Sequence[float]) -> list[float]:
    if len(seconds) < 2:
        return [round(s, 4) for s in seconds]
    return [round(s, 4) for s in statistics.quantiles(seconds, n=4)]


def _cpu_s(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
