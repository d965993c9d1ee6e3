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
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Subject:
    """A file to look at; ``device_us``: of one call, from the saved table."""

    problem: str
    name: str
    source: str
    device_us: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What its row is found by."""
        return self.problem, self.name


def subject(out: Path, problem: str) -> Subject:
    """A problem's champion, else its first seed."""
    saved, table = out / f"{problem}.py", out / f"{problem}.json"
    if saved.exists():
        timings = json.loads(table.read_text())["timings"] if table.exists() else []
        device_us = timings[0]["median"] * 1e6 if timings else None
        return Subject(problem, "champion", saved.read_text(), device_us)
    seed = seeds(problem, "triton")[0]
    return Subject(problem, f"seed {seed.name}", seed.source)


def row(target: Any, one: Subject, *, debug: bool) -> dict[str, Any]:
    """What came of one file."""
    begun = time.monotonic()
    told = {"problem": one.problem, "kernel": one.name, "device_us": one.device_us}
    kernel = Kernel(one.source, "triton")
    admission = target.admit(kernel)
    if not isinstance(admission, Admission):
        return {**told, "agreement": "unchecked", "reason": f"not admitted: {admission.reason}"}
    check = target.check_export(one.source, kernel, {case.name for case in target.card.cases})
    if debug or check.agreement is Agreement.UNCHECKED:
        print(f"--- what the process that ran it printed:\n{target.said}\n---", file=sys.stderr)
    return {**told, **check.to_json(), "took_s": round(time.monotonic() - begun, 1)}


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


def rows_of(problem: str, todo: list[Subject], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of one problem; what goes wrong is printed, and the others go on."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as open_targets:
        how = {"folder": Path(folder), "sandboxed": not options.unsandboxed, "language": "triton"}
        try:
            target = open_targets.enter_context(closing(fitness.open_target("cuda", problem, **how)))
            for one in todo:
                yield row(target, one, debug=options.debug)
        except Exception as why:
            print(f"{problem}: {type(why).__name__}: {why}", file=sys.stderr)
            if options.debug or not isinstance(why, fitness.FitnessError):
                traceback.print_exc()


def main() -> int:
    """Check what is missing, then print the table; 1 where a file did not come out as it should."""
    parser = argparse.ArgumentParser(description="Run exported files beside their launch plans.")
    parser.add_argument("--out", type=Path, default=Path("docs/results/h200"))
    parser.add_argument("--only", default=",".join(["forged", *TIER]), help="problems, and forged")
    parser.add_argument("--within", type=float, default=500.0, help="begin no problem after so many seconds")
    parser.add_argument("--anew", action="store_true", help="also what was checked before")
    parser.add_argument("--debug", action="store_true", help="print what the sandboxed processes print")
    parser.add_argument("--unsandboxed", action="store_true")
    parser.add_argument("--print", action="store_true", help="the table alone")
    options = parser.parse_args()
    begun, kept = time.monotonic(), options.out / KEPT
    rows = [json.loads(text) for text in kept.read_text().splitlines()] if kept.exists() else []
    done = {key(each) for each in rows if each["agreement"] != "unchecked" and not options.anew}
    for problem, wanted in ({} if options.print else _wanted(options.out, options.only.split(","))).items():
        todo = [one for one in wanted if one.key not in done]
        if todo and time.monotonic() - begun > options.within:
            print(f"{problem}: not begun, the time is up", file=sys.stderr)
            continue
        for made in rows_of(problem, todo, options) if todo else ():
            rows = [old for old in rows if key(old) != key(made)] + [made]
            kept.write_text("".join(json.dumps(each) + "\n" for each in rows))
            print(line(made), flush=True)
    print(table(rows))
    right = [each["agreement"] == ("different" if each["kernel"] in FORGED else "equal") for each in rows]
    print(f"{sum(right)} of {len(right)} as they should be")
    return int(not all(right))


def key(row: dict[str, Any]) -> tuple[str, str]:
    """What a row is found by."""
    return row["problem"], row["kernel"]


def _wanted(out: Path, only: list[str]) -> dict[str, list[Subject]]:
    """What to look at, by problem: each is opened once."""
    found: dict[str, list[Subject]] = {}
    if "forged" in only:
        found["softmax"] = [Subject("softmax", what, source) for what, source in FORGED.items()]
    for problem in only:
        if problem in problems_with_seeds("triton"):
            found.setdefault(problem, []).insert(0, subject(out, problem))
    return found


if __name__ == "__main__":
    sys.exit(main())
