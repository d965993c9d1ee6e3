"""Every seed through the whole gate and the timer, as ``kernel-evo verify`` does; one judge a problem.

    .venv/bin/python benchmarks/verify_seeds.py [--only softmax,rope] [--again]

Results are kept per problem in docs/results/seeds/, so a stopped run goes on where it was, and one problem
can be measured again alone: what this very judge said already is not asked again (``--again``: it is). The
table is made of all that is kept. Status 1 where a seed is not measured.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fitness
from fitness import machine
from fitness.verifier import verifier_hash
from fitness.verify import judge_once, scratch_folder
from populations.kernel import Kernel
from populations.seeds import Seed, problems_with_seeds, seeds
from populations.verdict import Outcome, Verdict

RESULT = Path(__file__).parents[1] / "docs" / "results" / "seeds.md"
KEPT = RESULT.with_suffix("")
COLUMNS = ("problem", "seed", "status", "general", "error / bound", "warm", "cold", "A/A % warm / cold")
HEAD = f"| {' | '.join(COLUMNS)} |\n{len(COLUMNS) * '|---'}|\n"


def measured(problem: str) -> dict[str, Any]:
    """A problem's seeds, judged; what the table needs of it."""
    with scratch_folder() as folder:
        target = fitness.open_target("cpu", problem, folder=folder)
        try:
            rows = []
            for seed in seeds(problem, "cpp"):
                verdict = judge_once(target, Kernel(seed.source, seed.language))
                rows.append(row(problem, seed, verdict))
                print(rows[-1], flush=True)
        finally:
            target.close()
    return {
        "problem": problem,
        "date": datetime.date.today().isoformat(),
        "machine": machine.facts(),
        "verifier": verifier_hash(),
        "rows": rows,
    }


def row(problem: str, seed: Seed, verdict: Verdict) -> str:
    """One line of the table."""
    timings = sorted(
        (timing for case in verdict.cases for timing in case.timings), key=lambda t: t.policy, reverse=True
    )
    speeds = [f"{t.speedup:.2f} [{t.speedup_ci95[0]:.2f}, {t.speedup_ci95[1]:.2f}]" for t in timings]
    noise = " / ".join(f"{100 * t.noise_floor:.1f}" for t in timings)
    error = max((case.max_error or 0.0 for case in verdict.cases), default=0.0)
    status = str(verdict.status)
    if verdict.status is not Outcome.MEASURED:
        status += f": {verdict.reason}"
    cells = [problem, seed.name, status, verdict.general, f"{error:.2f}", *(speeds or ["", ""]), noise]
    return f"| {' | '.join(map(str, cells))} |"


def table(results: Sequence[dict[str, Any]]) -> str:
    """All rows, with machine, dates and command."""
    machines = {f"{each['machine']['cpu']}, {each['machine']['cores']} cores" for each in results}
    dates = sorted({each["date"] for each in results})
    judges = {each["verifier"] for each in results}
    about = (
        f"\n{'; '.join(sorted(machines))}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, "
        "`benchmarks/verify_seeds.py`; speed-ups over the stronger baseline, 95 percent intervals."
    )
    if len(judges) > 1:
        about += f" Rows come from {len(judges)} states of the judge."
    rows = [line for each in results for line in each["rows"]]
    return "# The seeds, verified\n\n" + HEAD + "\n".join(rows) + "\n" + about + "\n"


def kept() -> dict[str, dict[str, Any]]:
    """What was measured before, by problem."""
    found = (json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json")))
    return {each["problem"]: each for each in found}


def main() -> None:
    """Judge what is missing; write the table once no problem lacks its rows."""
    everything = problems_with_seeds("cpp")
    parser = argparse.ArgumentParser(description="Verify every CPU seed.")
    parser.add_argument("--only", default=",".join(everything), help="these problems, comma between them")
    parser.add_argument("--again", action="store_true", help="also what this judge has measured before")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    for problem in options.only.split(","):
        if problem not in everything:
            parser.error(f"{problem} has no CPU seeds; there are {', '.join(everything)}")
        if not options.again and kept().get(problem, {}).get("verifier") == verifier_hash():
            continue
        (KEPT / f"{problem}.json").write_text(json.dumps(measured(problem), indent=1) + "\n")
    results = kept()
    if missing := [problem for problem in everything if problem not in results]:
        print(f"the table waits for {', '.join(missing)}", file=sys.stderr)
    else:
        RESULT.write_text(table([results[problem] for problem in everything]))
    if any("| measured |" not in line for each in results.values() for line in each["rows"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
