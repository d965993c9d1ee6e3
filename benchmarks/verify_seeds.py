"""Every seed through the whole gate and the timer, as ``kernel-evo verify`` does; one judge a problem.

.venv/bin/python benchmarks/verify_seeds.py [--only softmax,rope] [--write docs/results/seeds.md]
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fitness
from fitness import machine
from fitness.verify import judge_once
from populations.kernel import Kernel
from populations.seeds import problems_with_seeds, seeds

COLUMNS = ("problem", "seed", "status", "general", "error / bound", "warm", "cold", "A/A % warm / cold")
HEAD = f"| {' | '.join(COLUMNS)} |\n{len(COLUMNS) * '|---'}|"


def rows(problem: str) -> Iterator[str]:
    """A line for each seed of a problem."""
    with tempfile.TemporaryDirectory() as folder:
        target = fitness.open_target("cpu", problem, folder=Path(folder))
        try:
            for seed in seeds(problem, "cpp"):
                verdict = judge_once(target, Kernel(seed.source, seed.language))
                timings = sorted(
                    (timing for case in verdict.cases for timing in case.timings),
                    key=lambda timing: timing.policy,
                    reverse=True,
                )
                speeds = [
                    f"{t.speedup:.2f} [{t.speedup_ci95[0]:.2f}, {t.speedup_ci95[1]:.2f}]" for t in timings
                ]
                noise = " / ".join(f"{100 * t.noise_floor:.1f}" for t in timings)
                error = max((c.max_error or 0.0 for c in verdict.cases), default=0.0)
                status = (
                    verdict.status if verdict.status == "measured" else f"{verdict.status}: {verdict.reason}"
                )
                cells = [
                    problem,
                    seed.name,
                    status,
                    verdict.general,
                    f"{error:.2f}",
                    *(speeds or ["", ""]),
                    noise,
                ]
                yield f"| {' | '.join(map(str, cells))} |"
        finally:
            target.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify every seed.")
    parser.add_argument("--only", default=",".join(problems_with_seeds("cpp")))
    parser.add_argument("--write", type=Path, help="a Markdown file to write the table to")
    options = parser.parse_args()
    lines = [HEAD]
    print(HEAD, flush=True)
    for problem in options.only.split(","):
        for line in rows(problem):
            print(line, flush=True)
            lines.append(line)
    facts = machine.facts()
    lines.append(
        f"\n{facts['cpu']}, {facts['cores']} cores, {datetime.date.today().isoformat()}, "
        "`benchmarks/verify_seeds.py`; speed-ups over the stronger baseline, 95 percent intervals.\n"
    )
    if options.write:
        options.write.write_text("# The seeds, verified\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
