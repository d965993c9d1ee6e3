"""The README's table: every CPU problem, from seeds to the best evolved kernel, warm and cold.

    .venv/bin/python benchmarks/cpu_table.py [--minutes 2] [--only softmax,rope] [--again]

One search per problem; results are kept per problem, so a stopped run goes on where it was. ``--again``
searches anew: all problems, or those of ``--only``, whose rows then stand among the kept ones. Every number
comes from ``kernel-evo run``: the winner's last measurement of 15 interleaved rounds, beside the stronger
baseline in the same rounds.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import populations
from evo.summary import claimed_interval, standing
from populations.seeds import problems_with_seeds

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- table: benchmarks/cpu_table.py -->\n", "<!-- end of table -->\n"


def search(problem: str, minutes: float, folder: Path) -> dict[str, Any]:
    """One search in a process of its own; what the table needs of it."""
    path = folder / f"{problem}-{datetime.datetime.now():%m%d-%H%M%S}"
    command = [sys.executable, "-m", "evo", "run", problem, "--target", "cpu", "--effort", "quick"]
    command += ["--minutes", str(minutes), "--seed", "1", "--run-dir", str(path), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"the search on {problem} ended with status {done.returncode}: see {path}")
    told: dict[str, Any] = json.loads(done.stdout)
    run = populations.open(path)
    stand = standing(run)
    assert stand.best is not None and run.calibration is not None
    assert stand.best.verdict is not None and stand.best_seed is not None
    return {
        "problem": problem,
        "date": datetime.date.today().isoformat(),
        "machine": run.calibration.machine,
        "evaluations": told["evaluations"],
        "baselines": told["baselines"],
        "seed_best": told["seed_best"],
        "seed_ci95": claimed_interval(stand.best_seed.verdict),
        "against_seed": stand.against_seed,
        "fitness": stand.best.fitness,
        "operator": stand.best.operator,
        "minutes": minutes,
        "timings": [asdict(timing) for case in stand.best.verdict.cases for timing in case.timings],
    }


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    warm, cold = (next(t for t in result["timings"] if t["policy"] == policy) for policy in ("warm", "cold"))
    noise = " / ".join(f"{100 * timing['noise_floor']:.1f}" for timing in (warm, cold))
    if result["operator"] == "seed":
        beside = " (a seed)"
    else:
        beside = "" if result["against_seed"] == "ahead" else " (as its seed)"
    seed = ratio(result["seed_best"], result["seed_ci95"])
    return (
        f"| {result['problem']} | {warm['baseline_median'] * 1e6:.0f} ({warm['baseline']}) | "
        f"{warm['median'] * 1e6:.0f} | {seed} | **{ratio(warm['speedup'], warm['speedup_ci95'])}**{beside} | "
        f"{ratio(cold['speedup'], cold['speedup_ci95'])} | {noise} | {result['evaluations']} |"
    )


def ratio(speedup: float, interval: tuple[float, float]) -> str:
    """A speed-up and its interval."""
    return f"{speedup:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def table(results: list[dict[str, Any]]) -> str:
    """The whole table, with machine, date and command."""
    facts, minutes = results[0]["machine"], results[0]["minutes"]
    for kind in ("machine", "minutes"):
        if any(result[kind] != results[0][kind] for result in results):
            raise SystemExit(f"the kept results differ in {kind}: run with --again")
    head = (
        "| problem | stronger baseline, µs | evolved, µs | best seed, warm | evolved, warm | evolved, cold "
        "| A/A % warm / cold | kernels |"
    )
    rule = "|---|---:|---:|---|---|---|---:|---:|"
    wins = sum(r["fitness"] is not None and r["fitness"] > r["timings"][0]["noise_floor"] for r in results)
    dates = sorted({r["date"] for r in results})
    period = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    ahead = sum(r["operator"] != "seed" and r["against_seed"] == "ahead" for r in results)
    about = (
        f"{wins} of {len(results)} beat the stronger of eager and `torch.compile` by the lower end of their "
        f"interval and more than the noise; {ahead} beat their best seed as well, with intervals that do not "
        "meet (*as its seed*: the two cannot be told apart). Times are warm; speed-ups are over the stronger "
        "baseline, timed in the same rounds, with 95 percent intervals; A/A is the half-width of a baseline "
        "against itself. "
        f"{facts['cpu']}, {facts['cores']} cores, torch {facts['torch']}, {period}, "
        f"`make table` ({minutes:g} minutes a problem).\n"
    )
    return "\n".join([head, rule, *(row(r) for r in results)]) + "\n\n" + about


def main() -> None:
    """Run what is missing, then write the table to the results and into the README."""
    parser = argparse.ArgumentParser(description="Regenerate the README's table of CPU problems.")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--only", default=",".join(problems_with_seeds("cpp")))
    parser.add_argument("--out", type=Path, default=README.parent / "docs" / "results" / "cpu-table")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    problems = options.only.split(",")
    if unknown := set(problems) - set(problems_with_seeds("cpp")):
        parser.error(f"no CPU seeds: {', '.join(sorted(unknown))}")
    for problem in problems:
        kept = options.out / f"{problem}.json"
        if options.again or not kept.exists():
            kept.write_text(
                json.dumps(search(problem, options.minutes, Path("runs") / "table"), indent=1) + "\n"
            )
    results = [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))]
    text = table(results)
    print(text)
    readme = README.read_text()
    before, rest = readme.split(START, 1)
    README.write_text(before + START + text + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
