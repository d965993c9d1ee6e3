"""The GPU table: every problem of the tier on one card, from seeds to the best kernel of a short search.

    python benchmarks/gpu_table.py --out docs/results/h200 [--only softmax,matmul] [--seconds 60]
    python benchmarks/gpu_table.py --out docs/results/h200 --again        # on a freshly started machine
    python benchmarks/gpu_table.py --out docs/results/h200 --print        # the table alone

One search per problem, in a process of its own, each kept in a file: a stopped run goes on where it was, rows
of several calls merge. ``--again`` measures the saved champions and the baselines once more; ratios agree
where intervals overlap, each widened by its A/A half-width. Numbers are from ``kernel-evo``'s judge: medians
over interleaved rounds, 95 percent intervals by bootstrap over rounds.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import fitness
import populations
from evo.course import SEED
from evo.summary import standing
from fitness.verify import judge_once
from populations.events import Calibrated, Judged
from populations.kernel import Kernel
from populations.seeds import problems_with_seeds

TIER = {  # problem: kernel time in µs that KernelAgent published for it on this card, where it did
    "gelu_tanh": None,
    "swiglu": None,
    "rms_norm_rows": None,
    "rms_norm": None,
    "layer_norm": None,
    "softmax": None,
    "softmax_long": None,
    "cross_entropy": None,
    "matmul": None,
    "attention": None,
    "cumsum": None,
    "matvec": 1078.0,
    "rms_norm_channels": 1815.0,
    "max_pool3d": 1674.0,
    "conv_transpose3d": 5537.0,
    "depthwise_conv3x3": 841.0,
}


def searched(problem: str, seconds: float, sandboxed: bool) -> tuple[dict[str, Any], str]:
    """One search in a process of its own: the row, and the champion's source."""
    path = Path(tempfile.mkdtemp()) / problem
    command = [sys.executable, "-m", "evo", "run", problem, "--target", "cuda", "--seed", "1"]
    command += ["--minutes", str(seconds / 60), "--run-dir", str(path), "--json"]
    command += [] if sandboxed else ["--unsandboxed"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"the search on {problem} ended with status {done.returncode}")
    run = populations.open(path)
    stand, calibration = standing(run), run.calibration
    assert stand.best is not None and stand.best.verdict is not None and calibration is not None
    events = list(run.log.records())
    began = min(r.time for r in events if isinstance(r.event, Calibrated))
    judged = [r.time for r in events if isinstance(r.event, Judged)]
    row = {
        "problem": problem,
        "date": datetime.date.today().isoformat(),
        **measured(calibration, stand.best.verdict),
        "operator": stand.best.operator,
        "against_seed": stand.against_seed,
        "seeds": [
            {"why": one.rationale, "status": one.verdict.status, "us": microseconds(one.verdict)}
            for one in run.individuals()
            if one.operator == SEED and one.verdict is not None
        ],
        "kernels": len(judged),
        "search_s": max(judged) - began,
    }
    return row, stand.best.source


def measured(calibration: Any, verdict: Any) -> dict[str, Any]:
    """The figures of one measuring run."""
    return {
        "machine": calibration.machine,
        "baselines": [asdict(each) for each in calibration.baselines],
        "noise": max((each.half_width for each in calibration.noise), default=None),
        "floor_us": sum(each.seconds for each in calibration.floors) * 1e6,
        "status": verdict.status,
        "reason": verdict.reason,
        "general": verdict.general,
        "timings": [asdict(timing) for case in verdict.cases for timing in case.timings],
    }


def again(problem: str, source: str, sandboxed: bool) -> dict[str, Any]:
    """A saved champion and the baselines, measured anew."""
    with tempfile.TemporaryDirectory() as folder:
        target = fitness.open_target(
            "cuda", problem, folder=Path(folder), sandboxed=sandboxed, language="triton"
        )
        try:
            calibration = target.calibrate()
            verdict = judge_once(target, Kernel(source, "triton"))
        finally:
            target.close()
    return {"date": datetime.date.today().isoformat(), **measured(calibration, verdict)}


def microseconds(verdict: Any) -> float | None:
    """Median time of the first timed case."""
    timings = [timing for case in verdict.cases for timing in case.timings]
    return timings[0].median * 1e6 if timings else None


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    head = (
        "| problem | floor | eager | compile | max-autotune | published | best seed | best evolved "
        "| speed-up over the best baseline | again | A/A % | kernels in s |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|---|---|--:|--:|\n"
    )
    return head + "\n".join(line(row) for row in rows) + "\n"


def line(row: dict[str, Any]) -> str:
    """One problem; times in microseconds."""
    base = {
        b["name"]: shown(b["median"] and 1e6 * b["median"]) + ("" if b["counted"] else "*")
        for b in row["baselines"]
    }
    seeds = [seed["us"] for seed in row["seeds"] if seed["us"]]
    first = first_timing(row)
    evolved = f"{first['median'] * 1e6:.1f}" if first else row["status"]
    repeats = [ratio(first_timing(more)) for more in row.get("again", [])]
    return " | ".join(
        [
            f"| {row['problem']}",
            shown(row["floor_us"]),
            *(base.get(name, "") for name in ("eager", "torch.compile", "max-autotune")),
            shown(TIER.get(row["problem"])),
            shown(min(seeds, default=None)),
            evolved + ("" if row["operator"] != "seed" else " (a seed)"),
            ratio(first),
            "; ".join(repeats),
            shown(row["noise"] and 100 * row["noise"], 2),
            f"{row['kernels']} in {row['search_s']:.0f} |",
        ]
    )


def first_timing(measuring: dict[str, Any]) -> dict[str, Any] | None:
    """What was measured of the first timed case; None: nothing was."""
    timings: list[dict[str, Any]] = measuring["timings"]
    return timings[0] if timings else None


def agreement(rows: list[dict[str, Any]]) -> str:
    """How many measurings' ratios agree with that of the one before, and which do not."""
    pairs = [(row["problem"], pair) for row in rows for pair in pairwise([row, *row.get("again", [])])]
    apart = [problem for problem, pair in pairs if not agree(*pair)]
    told = f"; not: {', '.join(apart)}" if apart else ""
    return f"{len(pairs) - len(apart)} of {len(pairs)} ratios agree with the one measured before{told}"


def agree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two measuring runs' intervals of the ratio overlap, each widened by its A/A half-width."""
    ends = []
    for measuring in (one, other):
        timing = first_timing(measuring)
        if timing is None:
            return False
        low, high = timing["speedup_ci95"]
        noise = math.exp(measuring["noise"] or 0.0)
        ends.append((low / noise, high * noise))
    return max(low for low, _ in ends) <= min(high for _, high in ends)


def ratio(timing: dict[str, Any] | None) -> str:
    """A speed-up and its interval."""
    if timing is None:
        return ""
    low, high = timing["speedup_ci95"]
    return f"{timing['speedup']:.3f} [{low:.3f}, {high:.3f}]"


def shown(value: float | None, digits: int = 1) -> str:
    """A number, or nothing."""
    return "" if value is None else f"{value:.{digits}f}"


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description="Measure the GPU tier on this card.")
    parser.add_argument(
        "--only", default=",".join(name for name in TIER if name in problems_with_seeds("triton"))
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run, baselines included")
    parser.add_argument("--out", type=Path, default=Path("docs/results/h200"))
    parser.add_argument("--within", type=float, default=500.0, help="begin no problem after so many seconds")
    parser.add_argument("--unsandboxed", action="store_true")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--again", action="store_true")
    mode.add_argument("--print", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    for problem in [] if options.print else options.only.split(","):
        kept, source = options.out / f"{problem}.json", options.out / f"{problem}.py"
        if time.monotonic() - begun > options.within:
            print(f"{problem}: not begun, the time is up", file=sys.stderr)
            continue
        try:
            if options.again:
                row = json.loads(kept.read_text())
                more = again(problem, source.read_text(), not options.unsandboxed)
                row["again"] = [*row.get("again", []), more]
            elif kept.exists():
                continue
            else:
                row, text = searched(problem, options.seconds, not options.unsandboxed)
                source.write_text(text)
        except (RuntimeError, fitness.FitnessError) as why:
            print(f"{problem}: {why}", file=sys.stderr)
            continue
        kept.write_text(json.dumps(row, indent=1) + "\n")
        print(line(row), flush=True)
    rows = [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))]
    print(table(rows))
    print(agreement(rows))


if __name__ == "__main__":
    main()
