"""What choosing operators, and evolving at all, is worth: whole searches beside control arms on the CPU.

    python benchmarks/controls.py [--problems masked_cumsum,rms_norm] [--seeds 5]
                                  [--evaluations 40] [--write docs/results/controls.md]

Every search is a ``kernel-evo run`` of its own with the same number of evaluations. Arms take turns, seed by
seed, so that a machine that drifts does so for all alike. What each search found is kept in a file, so a
stopped benchmark goes on where it was (``--again`` starts over). Compared is the speed-up of the best kernel
over that of the best starting kernel of the same search, both measured at its end for a claim, by medians: a
lower bound of the starting kernel that lies far below it would look like a gain.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import populations
from evo.summary import standing

WHOLE = "whole"
ARMS = (WHOLE, "random-operator", "best-of-n")
NAMES = {
    WHOLE: "whole search (bandit)",
    "random-operator": "operators at random",
    "best-of-n": "children of the seeds alone",
}
# Two-sided 95 percent quantiles of Student's t, by degrees of freedom.
STUDENT = (math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)


def search(problem: str, arm: str, seed: int, evaluations: int, runs: Path, target: str) -> dict[str, Any]:
    """One search in a process of its own; what the table needs of it."""
    path = runs / f"{problem}-{arm}-{seed}-{datetime.datetime.now():%m%d-%H%M%S}"
    command = [sys.executable, "-m", "evo", "run", problem, "--target", target, "--json"]
    command += ["--evaluations", str(evaluations), "--seed", str(seed), "--run-dir", str(path)]
    command += [] if arm == WHOLE else ["--control", arm]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    with populations.open(path) as run:
        stand = standing(run)
        assert stand.best is not None and run.calibration is not None
        operators = run.frame("operators")
        return {
            "problem": problem,
            "arm": arm,
            "seed": seed,
            "date": datetime.date.today().isoformat(),
            "machine": run.calibration.machine,
            "evaluations": told["evaluations"],
            "stopped": told["stopped"],
            "minutes": told["ledger"]["wall_s"] / 60,
            "asks": int(operators["asks"].sum()),
            "noise": stand.noise,
            "best": stand.best.speedup,
            "best_seed": stand.best_seed.speedup if stand.best_seed else None,
            "fitness": stand.best.fitness,
        }


def gain(result: dict[str, Any]) -> float:
    """Log of the best kernel's speed-up over that of the best starting kernel; 0 where it is one."""
    return math.log(result["best"] / (result["best_seed"] or 1.0))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean over seeds, and the ends of its 95 percent interval (Student's t)."""
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        return mean, -math.inf, math.inf
    quantile = STUDENT[count - 1] if count <= len(STUDENT) else 2.0
    half = quantile * statistics.stdev(values) / math.sqrt(count)
    return mean, mean - half, mean + half


def as_factor(values: Sequence[float]) -> str:
    """Log gains as a geometric mean with its interval."""
    return "{:.3f} [{:.3f}, {:.3f}]".format(*map(math.exp, interval(values)))


def row(problem: str, arm: str, results: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """One arm on one problem; beside it the whole search with the same seeds."""
    own = {r["seed"]: gain(r) for r in results if (r["problem"], r["arm"]) == (problem, arm)}
    whole = {r["seed"]: gain(r) for r in results if (r["problem"], r["arm"]) == (problem, WHOLE)}
    both = [whole[seed] - own[seed] for seed in own if seed in whole]
    mine = [r for r in results if (r["problem"], r["arm"]) == (problem, arm)]
    return (
        problem,
        NAMES[arm],
        as_factor(list(own.values())),
        "" if arm == WHOLE else as_factor(both),
        f"{100 * statistics.fmean(r['noise'] for r in mine):.1f}",
        f"{statistics.fmean(r['asks'] for r in mine):.0f}",
        f"{statistics.fmean(r['minutes'] for r in mine):.1f}",
        str(len(mine)),
    )


HEAD = ("problem", "arm", "best over seed", "whole search over this arm", "A/A %", "asks", "minutes", "seeds")


def table(results: Sequence[dict[str, Any]], problems: Sequence[str], command: str) -> str:
    """All arms on all problems, and over the problems; with machine, date and command."""
    if any(result["machine"] != results[0]["machine"] for result in results):
        raise SystemExit("the kept results come from different machines or libraries: run with --again")
    lines = [HEAD, ("---",) * len(HEAD)]
    lines += [row(problem, arm, results) for problem in problems for arm in ARMS]
    facts = results[0]["machine"]
    counts = sorted({result["evaluations"] for result in results})
    about = (
        "Factors are ratios of median speed-ups: geometric means over seeds with 95 percent intervals "
        "(Student's t on logarithms; the fourth column pairs searches of one seed). An interval "
        "that holds 1 shows no difference. Each search judged "
        f"{' or '.join(map(str, counts))} kernels. Children of the seeds alone are not tuned further, but "
        "the operator that changes numbers is among their operators.\n\n"
        f"{facts.get('cpu', facts.get('model'))}, {facts['cores']} cores, torch {facts.get('torch')}, "
        f"{' and '.join(sorted({r['date'] for r in results}))}, `{command}`"
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{about}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", default="masked_cumsum,rms_norm,cross_entropy")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "controls", help="where the searches go")
    parser.add_argument("--again", action="store_true", help="search anew whatever is kept")
    parser.add_argument("--write", type=Path, help="a Markdown file to write the table to")
    options = parser.parse_args()
    problems, results = options.problems.split(","), []
    options.runs.mkdir(parents=True, exist_ok=True)
    for seed in range(1, options.seeds + 1):
        for problem in problems:
            for arm in ARMS:
                kept = options.runs / f"{problem}-{arm}-{seed}-of-{options.evaluations}.json"
                if options.again or not kept.exists():
                    found = search(problem, arm, seed, options.evaluations, options.runs, options.target)
                    kept.write_text(json.dumps(found, indent=1) + "\n")
                results.append(json.loads(kept.read_text()))
                print(problem, arm, seed, f"{math.exp(gain(results[-1])):.3f}", file=sys.stderr)
    command = f"python benchmarks/controls.py {' '.join(sys.argv[1:])}".strip()
    text = f"# Whole searches beside control arms\n\n{table(results, problems, command)}"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
