"""Profiles of the best kernels on this GPU: the roofline, static facts, and hardware counters by ncu.

    python benchmarks/gpu_profiles.py --out docs/results/h200 [--only softmax,matvec] [--debug]
    python benchmarks/gpu_profiles.py --out docs/results/h200 --print      # the tables alone

For each problem its champion in the folder (PROBLEM.py, as benchmarks/gpu_table.py leaves them), else its
first Triton seed. Each row is kept in OUT/profiles/PROBLEM.json; a row that is there is not made again, but
with ``--again``. What fails prints its reason and the last that was said, and the others go on; ``--debug``
prints all that ncu said. An occupancy bound that ncu does not share is printed as DIFFERS. Status 1 where a
row has no counters. Less than a minute a problem, most of it loading; no clock is changed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import fitness
from evo.profiling import as_data, examined, lines
from evo.settings import SettingsError
from fitness.counters import profiler
from fitness.profiling import Device, device
from populations.kernel import Kernel
from populations.seeds import problems_with_seeds, seeds

FOLDER = "profiles"
SAID = 3000  # characters of what was said that a failure shows
COLUMNS = (
    "problem", "kernel", "function", "registers", "spilled", "shared", "occupancy ≤", "limiter",
    "instructions", "most of them", "µs (ncu)", "memory %", "L2 hits %", "occupancy %", "issue %", "tensor %",
    "local MB", "waits for", "of a copy %", "of a product %", "bound",
)  # fmt: skip


def source_of(problem: str, folder: Path) -> tuple[str, str]:
    """A problem's best kernel, and what it is called: "champion" or the seed's name."""
    champion = folder / f"{problem}.py"
    if champion.exists():
        return champion.read_text(), "champion"
    first = seeds(problem, "triton")[0]
    return first.source, f"seed {first.name}"


def made(problem: str, folder: Path, gpu: Device, options: argparse.Namespace) -> dict[str, Any]:
    """One row, as plain data; what people want to see goes to standard error."""
    source, name = source_of(problem, folder)
    started = time.monotonic()
    _, found = examined(Kernel(source, "triton"), problem, 0, not options.unsandboxed, gpu)
    if options.debug or found.counters is None:
        print(found.said if options.debug else found.said[-SAID:], file=sys.stderr)
    bounds = {one.kernel: one.occupancy_bound for one in found.counters or ()}
    for one in found.static:
        theirs = bounds.get(one.name)
        if one.occupancy is not None and theirs is not None and abs(one.occupancy - theirs) > 0.005:
            print(f"  DIFFERS: {one.name}: bound {one.occupancy:.4f}, by ncu {theirs:.4f}", file=sys.stderr)
    for line in lines(gpu, found, None):
        print(f"  {line}", file=sys.stderr, flush=True)
    print(f"  {problem}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return {
        "problem": problem,
        "kernel": name,
        "date": datetime.date.today().isoformat(),
        "positions": positions(folder / f"{problem}.json", gpu) if name == "champion" else [],
        **{key: value for key, value in as_data(gpu, found, None).items() if key != "positions"},
    }


def positions(measured: Path, gpu: Device) -> list[dict[str, Any]]:
    """Where the champion stands under the roofline, by the times that its row of the GPU table has."""
    if not measured.exists():
        return []
    timings = json.loads(measured.read_text()).get("timings", [])
    found = [gpu.roofline.position(timing["gbps"], timing["tflops"]) for timing in timings]
    return [vars(position) for position in found]


def rows(told: dict[str, Any]) -> list[list[str]]:
    """Cells of a problem's rows: one a device function, with the counters of its first launch."""
    cells = []
    counted = {one["kernel"]: one for one in reversed(told["counters"] or [])}
    at = told["positions"][0] if told["positions"] else {}
    for one in told["static"]:
        count = counted.get(one["name"], {})
        mix = sorted((one["mix"] or {}).items(), key=lambda item: -item[1])[:4]
        local = [count.get(f"local_{way}_bytes") for way in ("read", "write")]
        stall = f"{count['stall']} {percent(count['stall_share'])}" if count.get("stall") else ""
        cells.append([
            told["problem"], told["kernel"], one["name"], shown(one["registers"]), shown(one["spill_bytes"]),
            shown(one["shared_bytes"]), percent(one["occupancy"]), one["limiter"] or "",
            shown(one["instructions"]), ", ".join(f"{kind} {percent(share)}" for kind, share in mix),
            f"{count['seconds'] * 1e6:.1f}" if count.get("seconds") else "",
            *(percent(count.get(key)) for key in ("dram", "l2_hits", "occupancy", "issue_slots", "tensor")),
            "" if None in local else f"{sum(local) / 1e6:.1f}", stall,
            percent(at.get("bandwidth")), percent(at.get("rate")), at.get("bound", ""),
        ])  # fmt: skip
    return cells


def table(kept: list[dict[str, Any]]) -> str:
    """All rows as Markdown, and why some have no counters."""
    head = f"| {' | '.join(COLUMNS)} |\n{len(COLUMNS) * '|---'}|"
    body = [f"| {' | '.join(cells)} |" for told in kept for cells in rows(told)]
    missing = [
        f"{told['problem']}: no counters: {told['reason']}" for told in kept if told["counters"] is None
    ]
    return "\n".join([head, *body, "", *missing])


def percent(share: float | None) -> str:
    """A share of one in percent, or nothing."""
    return (
        "" if share is None else f"{100 * share:.0f}" if share >= 0.01 or not share else f"{100 * share:.1f}"
    )


def shown(number: int | None) -> str:
    """A number, or nothing."""
    return "" if number is None else str(number)


def main() -> int:
    """Make what is missing, then print the tables; 1 where a row lacks counters or could not be made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/results/h200"))
    parser.add_argument("--only", help="problems, with commas between [champions in OUT, or all with seeds]")
    parser.add_argument("--within", type=float, default=500.0, help="begin no problem after so many seconds")
    parser.add_argument("--again", action="store_true", help="also make rows that are kept")
    parser.add_argument("--debug", action="store_true", help="print all that ncu says")
    parser.add_argument("--print", action="store_true", help="make nothing")
    parser.add_argument("--unsandboxed", action="store_true")
    options = parser.parse_args()
    folder = options.out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    champions = [name for name in problems_with_seeds("triton") if (options.out / f"{name}.py").exists()]
    names = options.only.split(",") if options.only else champions or list(problems_with_seeds("triton"))
    failed = 0 if options.print else make(names, folder, options)
    kept = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    for roofline in {json.dumps(told["roofline"]) for told in kept}:
        print(f"roofline: {roofline}")
    print(table(kept))
    return int(failed > 0)


def make(names: list[str], folder: Path, options: argparse.Namespace) -> int:
    """Rows that are missing; how many of them could not be made, or have no counters."""
    begun, failed = time.monotonic(), 0
    try:
        gpu = device()
    except fitness.FitnessError as why:
        print(f"no GPU to profile on: {why}", file=sys.stderr)
        return len(names)
    print(f"{gpu.name} ({gpu.arch}), ncu: {profiler() or 'none'}", file=sys.stderr)
    print(f"roofline: {gpu.roofline}, in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    for problem in names:
        path = folder / f"{problem}.json"
        if path.exists() and not options.again:
            continue
        if time.monotonic() - begun > options.within:
            print(f"{problem}: not begun, the time is up", file=sys.stderr)
            failed += 1
            continue
        print(f"{problem}:", file=sys.stderr, flush=True)
        try:
            told = made(problem, options.out, gpu, options)
        except (fitness.FitnessError, SettingsError, OSError, LookupError, ValueError) as why:
            print(f"{problem}: {why}", file=sys.stderr, flush=True)
            if options.debug:
                traceback.print_exc()
            failed += 1
            continue
        failed += told["counters"] is None
        path.write_text(json.dumps(told, indent=1) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
