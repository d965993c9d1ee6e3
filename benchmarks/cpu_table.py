"""The README's table: every CPU problem, from seeds to the best evolved kernel, warm and cold.

    .venv/bin/python benchmarks/cpu_table.py [--minutes 2.5] [--only softmax,rope] [--out docs/results/cpu-table]

One search per problem; results are kept per problem, so a stopped run goes on where it was (``--again`` starts over).
Every number comes from ``kernel-evo run --json``: the winner's last measurement of 15 interleaved rounds, beside the
stronger baseline in the same rounds.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fitness
from fitness import machine

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- table: benchmarks/cpu_table.py -->\n", "<!-- end of table -->\n"


def search(problem: str, minutes: float, folder: Path) -> dict[str, Any]:
    """One search in a process of its own; its JSON."""
    command = [sys.executable, "-m", "evo", "run", problem, "--target", "cpu", "--effort", "full"]
    command += ["--minutes", str(minutes), "--seed", "1", "--run-dir", str(folder / "runs" / problem), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    best = result["best"]
    warm, cold = (next(t for t in best["timings"] if t["policy"] == policy) for policy in ("warm", "cold"))
    baselines = {(b["name"], b["policy"]): b for b in result["baselines"]}

    def us(name: str) -> str:
        median = baselines[name, "warm"]["median"]
        return f"{median * 1e6:.0f}" if median else "–"

    def ratio(timing: dict[str, Any]) -> str:
        low, high = timing["speedup_ci95"]
        return f"{timing['speedup']:.2f} [{low:.2f}, {high:.2f}]"

    noise = 100 * max(warm["noise_floor"], cold["noise_floor"])
    seed = result["seed_best"]
    return (
        f"| {result['problem']} | {us('eager')} | {us('torch.compile')} | {warm['median'] * 1e6:.0f} | "
        f"{seed:.2f} | **{ratio(warm)}** | {ratio(cold)} | {noise:.1f} % | {result['evaluations']} |"
    )


def table(results: list[dict[str, Any]], minutes: float) -> str:
    """The whole table, with machine, date and command."""
    facts = machine.facts()
    head = "| problem | eager µs | compile µs | evolved µs | best seed | evolved, warm | evolved, cold | A/A | kernels |"
    rule = "|---|---:|---:|---:|---:|---|---|---:|---:|"
    wins = sum(r["best"]["fitness"] is not None and r["best"]["fitness"] > 0 for r in results)
    about = (
        f"{wins} of {len(results)} beat the stronger of eager and `torch.compile` by the lower end of their interval. "
        f"Times are warm; the last columns are speed-ups over the stronger baseline with 95 percent intervals, the A/A "
        f"half-width, and kernels evaluated. {facts['cpu']}, {facts['cores']} cores, "
        f"{datetime.date.today().isoformat()}, `make table` ({minutes:g} minutes a problem).\n"
    )
    return "\n".join([head, rule, *(row(r) for r in results)]) + "\n\n" + about


def main() -> None:
    """Run what is missing, then write the table to the results and into the README."""
    parser = argparse.ArgumentParser(description="Regenerate the README's table of CPU problems.")
    parser.add_argument("--minutes", type=float, default=2.5)
    parser.add_argument("--only", default=",".join(fitness.problem_names()))
    parser.add_argument("--out", type=Path, default=README.parent / "docs" / "results" / "cpu-table")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for problem in options.only.split(","):
        kept = options.out / f"{problem}.json"
        if options.again or not kept.exists():
            kept.write_text(json.dumps(search(problem, options.minutes, Path("runs") / "table"), indent=1) + "\n")
    results = [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))]
    text = table(results, options.minutes)
    print(text)
    readme = README.read_text()
    before, rest = readme.split(START, 1)
    README.write_text(before + START + text + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
