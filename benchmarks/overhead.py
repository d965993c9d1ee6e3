"""Engine overhead per candidate and memory, on a device that answers at once.

    python benchmarks/overhead.py [--candidates 20000] [--write docs/results/overhead.md]

Everything a real run does happens here (ask, propose, admit, event log, archive, statistics), but for
building and judging. Rows come with an operator that only appends a line, which is the engine alone, and
with the built-in operators on the softmax seeds, which is the engine and the rewriting of syntax trees; and
with 16 requests open to a model that takes 30 s for each.
Each row is a process of its own, so that its peak memory is its own.
"""

# ruff: noqa: ARG002 -- stand-ins take what the seam hands them
from __future__ import annotations

import argparse
import datetime
import json
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from random import Random

import evo
from evo import session
from evo.settings import settings
from operators.agents.models import ModelSettings
from operators.proposal import Brief, Proposal
from populations.events import Event, Judged
from populations.kernel import Kernel
from populations.state import State

SEED = """#include <cstdint>
constexpr int TILE = 64;  // tune: 16 32 64 128 256
constexpr int GRAIN = 4;  // tune: 1 2 4 8 16
extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out0[i] = x[i];
}
"""
WINDOWS = 10
OPEN = 16  # requests
ROWS = {
    "append": "append a line",
    "builtin": "built-in",
    "open": f"append a line, {OPEN} requests of 30 s open",
}


class Append:
    """The cheapest operator there can be: one more line, the oldest of ten goes."""

    name = "append"
    arity = 1

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:
        lines = parents[0].source.splitlines()
        added = [line for line in lines if line.startswith("static")]
        kept = [line for line in lines if line not in added[:-9]]
        source = "\n".join([*kept, f"static int v{rng.getrandbits(40)};"]) + "\n"
        return Proposal(Kernel(source, "cpp"), self.name, "one more line")


class Stopwatch:
    """Notes the time of every verdict."""

    def __init__(self) -> None:
        self.at = [time.perf_counter()]

    def told(self, event: Event, state: State) -> None:
        if isinstance(event, Judged):
            self.at.append(time.perf_counter())

    def doing(self, what: str) -> None:
        pass

    def note(self, line: str) -> None:
        pass


class Sluggish(BaseHTTPRequestHandler):
    """A model that answers a probe at once and anything else after half a minute."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        if b"# Your task" in asked:
            time.sleep(30)
        choice = {"index": 0, "message": {"role": "assistant", "content": "ready"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = json.dumps({"id": "1", "model": "sluggish", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # the run has ended
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def model(requests: int) -> Iterator[list[ModelSettings]]:
    """A model that takes so many requests at once; none where that is 0."""
    if not requests:
        yield []
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sluggish)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [ModelSettings("sluggish", f"http://127.0.0.1:{server.server_port}/v1", parallel=requests)]
    finally:
        server.shutdown()


def measure(candidates: int, which: str) -> dict[str, object]:
    """Milliseconds per candidate in ten windows of one run, and its peak memory in MB."""
    toolbox, builtin = evo.toolbox("softmax"), which == "builtin"
    if not builtin:
        toolbox.register("mutate", Append())
    watch = Stopwatch()
    processor = time.process_time()
    with tempfile.TemporaryDirectory() as folder, model(OPEN if which == "open" else 0) as models:
        seed = Path(folder) / "seed.cpp"
        seed.write_text(SEED)
        session.start(
            "softmax" if builtin else "instant",
            settings(evaluations=candidates, patience=2000, models=models),
            watch,
            target="fitness.testing:InstantTarget",
            seeds=[] if builtin else [seed],
            run_dir=Path(folder) / "run",
            toolbox=toolbox,
        )
        processor = time.process_time() - processor
        size = sum(file.stat().st_size for file in (Path(folder) / "run").rglob("*") if file.is_file())
    done = len(watch.at) - 1
    edges = [done * n // WINDOWS for n in range(WINDOWS + 1)]
    return {
        "operators": ROWS[which],
        "candidates": done,
        "windows_ms": [1e3 * (watch.at[b] - watch.at[a]) / max(1, b - a) for a, b in pairwise(edges)],
        "mean_ms": 1e3 * (watch.at[-1] - watch.at[0]) / max(1, done),
        "processor_ms": 1e3 * processor / max(1, done),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "disk_mb": size / 2**20,
    }


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows in Markdown, with machine, date and command."""
    columns = (
        "operators",
        "candidates",
        "ms each",
        "processor ms",
        "first tenth",
        "last tenth",
        "slowest tenth",
    )
    cells: list[tuple[object, ...]] = [(*columns, "peak MB", "disk MB"), ("---",) * 9]
    for row in rows:
        windows = row["windows_ms"]
        assert isinstance(windows, list)
        times = (row["mean_ms"], row["processor_ms"], windows[0], windows[-1], max(windows))
        sizes = (f"{row[size]:.0f}" for size in ("peak_mb", "disk_mb"))
        cells.append((row["operators"], row["candidates"], *(f"{time:.2f}" for time in times), *sizes))
    lines = [f"| {' | '.join(map(str, line))} |" for line in cells]
    command = f"python benchmarks/overhead.py {' '.join(sys.argv[1:])}".strip()
    machine = f"{_processor()}, Python {platform.python_version()}, {datetime.date.today()}, `{command}`"
    return "\n".join([*lines, "", machine, ""])


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--candidates", type=int, nargs="+", default=[1000, 20000], help="of the engine's rows"
    )
    parser.add_argument("--builtin", type=int, nargs="*", default=[1000], help="candidates of the other rows")
    parser.add_argument("--open", type=int, nargs="*", default=[5000], help="the same, with requests open")
    parser.add_argument("--write", type=Path, help="a Markdown file to write the table to")
    parser.add_argument("--one", choices=tuple(ROWS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.candidates[0], options.one)))
        return
    rows = []
    asked = (("append", options.candidates), ("open", options.open), ("builtin", options.builtin))
    for which, counts in asked:
        for count in counts:
            command = [sys.executable, __file__, "--one", which, "--candidates", str(count)]
            rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
            print(json.dumps(rows[-1]), file=sys.stderr)
    text = table(rows)
    print(text)
    if options.write:
        options.write.write_text(f"# Engine overhead, on a device that answers at once\n\n{text}")


if __name__ == "__main__":
    main()
