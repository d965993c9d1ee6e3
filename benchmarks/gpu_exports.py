"""Exported files beside their launch plans, on a real GPU: what the check at the end of a search does.

    python benchmarks/gpu_exports.py --out docs/results/h200 [--only softmax,matvec] [--within 500] [--debug]
    python benchmarks/gpu_exports.py --out docs/results/h200 --print

For each problem of the tier its saved champion, else its first seed: lowered for all cases, then run for real
in the sandbox. Two forged files, which lowering accepts, must be refused. Rows are kept in exports.jsonl: a
stopped run goes on where it was. Device µs are those of the saved table, cold; wall µs are of one call of the
entry, the host's work included, caches warm.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

from gpu_table import TIER

import fitness
from fitness.target import Admission
from populations.export_check import Agreement
from populations.kernel import Kernel
from populations.seeds import problems_with_seeds, seeds

KEPT = "exports.jsonl"
HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * n + at, powers / tl.sum(powers, 0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    out = torch.empty_like(x)
"""
LAUNCH = "softmax[({},)](x, out, rows, n, BLOCK=triton.next_power_of_2(n), num_warps=8)\n    return out\n"
FORGED = {  # what they do once they run for real; lowering sees an honest softmax
    "half the rows where addresses are real": (
        HEAD
        + "    traced = x.data_ptr() >> 40 == 1\n    "
        + LAUNCH.format("rows if traced else (rows + 1) // 2")
    ),
    "the framework where the card has not quite the memory": (
        HEAD
        + "    if torch.cuda.get_device_properties(0).total_memory % (1 << 30):\n"
        + "        return torch.softmax(x, -1)\n    "
        + LAUNCH.format("rows")
    ),
}


def row(problem: str, what: str, source: str, *, sandboxed: bool, debug: bool) -> dict[str, Any]:
    """One file: what came of it."""
    begun = time.monotonic()
    told: dict[str, Any] = {"problem": problem, "kernel": what, "device_us": None}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        opening = fitness.open_target(
            "cuda", problem, folder=Path(folder), sandboxed=sandboxed, language="triton"
        )
        with closing(opening) as target:
            kernel = Kernel(source, "triton")
            admission = target.admit(kernel)
            if not isinstance(admission, Admission):
                return {**told, "agreement": "unchecked", "reason": f"not admitted: {admission.reason}"}
            check = target.check_export(source, kernel, {case.name for case in target.card.cases})
            if debug or check.agreement is Agreement.UNCHECKED:
                print(f"--- what the process that ran it printed:\n{target.said}\n---", file=sys.stderr)
    return {**told, **check.to_json(), "took_s": round(time.monotonic() - begun, 1)}


def subjects(out: Path, problem: str) -> tuple[str, str, float | None]:
    """Name, source and device time in µs of a problem's champion, else of its first seed."""
    saved, table = out / f"{problem}.py", out / f"{problem}.json"
    if saved.exists():
        timings = json.loads(table.read_text())["timings"] if table.exists() else []
        return "champion", saved.read_text(), timings[0]["median"] * 1e6 if timings else None
    seed = seeds(problem, "triton")[0]
    return f"seed {seed.name}", seed.source, None


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    marks = {True: "yes", False: "no", None: ""}
    same = marks[row.get("bytes_equal")]
    if row.get("within_bound"):
        same = "within the bound: two runs differ"
    times = ("" if row.get(key) is None else f"{row[key]:.1f}" for key in ("device_us", "wall_us"))
    launches = marks[row.get("launches_equal")]
    why = "" if row["agreement"] == "equal" else row["reason"]
    cells = [row["problem"], row["kernel"], row["agreement"], launches, same, *times, why]
    return "| " + " | ".join(cells) + " |"


def table(rows: list[dict[str, Any]]) -> str:
    """All rows as Markdown."""
    head = "| problem | kernel | export | launches equal | bytes equal | device µs | wall µs a call | why |\n"
    return head + "|---|---|---|---|---|--:|--:|---|\n" + "\n".join(map(line, rows)) + "\n"


def main() -> int:
    """Check what is missing, then print the table; 1 where a file did not come out as it should."""
    parser = argparse.ArgumentParser(description="Run exported files beside their launch plans.")
    parser.add_argument("--out", type=Path, default=Path("docs/results/h200"))
    parser.add_argument("--only", default=",".join([*TIER, "forged"]), help="problems, and forged")
    parser.add_argument("--within", type=float, default=500.0, help="begin nothing after so many seconds")
    parser.add_argument("--anew", action="store_true", help="also what was checked before")
    parser.add_argument("--debug", action="store_true", help="print what the sandboxed processes print")
    parser.add_argument("--unsandboxed", action="store_true")
    parser.add_argument("--print", action="store_true", help="the table alone")
    options = parser.parse_args()
    begun, kept = time.monotonic(), options.out / KEPT
    rows = [json.loads(text) for text in kept.read_text().splitlines()] if kept.exists() else []
    for problem, what, source, device_us in (
        [] if options.print else _wanted(options.out, options.only.split(","))
    ):
        done = any((old["problem"], old["kernel"]) == (problem, what) for old in rows)
        if done and not options.anew:
            continue
        if time.monotonic() - begun > options.within:
            print(f"{problem}, {what}: not begun, the time is up", file=sys.stderr)
            continue
        try:
            made = row(problem, what, source, sandboxed=not options.unsandboxed, debug=options.debug)
        except Exception as why:  # one row must not stop the others
            print(f"{problem}, {what}: {type(why).__name__}: {why}", file=sys.stderr)
            if options.debug or not isinstance(why, fitness.FitnessError):
                traceback.print_exc()
            continue
        made["device_us"] = device_us
        rows = [old for old in rows if (old["problem"], old["kernel"]) != (problem, what)] + [made]
        kept.write_text("".join(json.dumps(each) + "\n" for each in rows))
        print(line(made), flush=True)
    print(table(rows))
    wrong = [each for each in rows if (each["agreement"] == "equal") != (each["kernel"] not in FORGED)]
    print(f"{len(rows) - len(wrong)} of {len(rows)} as they should be")
    return int(bool(wrong))


def _wanted(out: Path, only: list[str]) -> list[tuple[str, str, str, float | None]]:
    there = problems_with_seeds("triton")
    found = [(problem, *subjects(out, problem)) for problem in only if problem in there]
    if "forged" in only:
        found += [("softmax", what, source, None) for what, source in FORGED.items()]
    return found


if __name__ == "__main__":
    sys.exit(main())
