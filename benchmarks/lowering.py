"""How fast Triton sources become launch plans.

    python benchmarks/lowering.py [--threads 1,2,4] [--sources 16]

Needs torch and Triton, but no GPU; about a minute on a quiet machine. Kernels: a row reduction with one
specialisation, and the expert softmax with its real cases, of which each row length is a specialisation.
Columns, over so many different sources lowered by so many threads:

    sources/s         finished in a second of wall time
    wall              mean seconds of one ``lower()``
    trace, compile    seconds that its children took, in sum: side by side they may exceed the wall
    here              seconds of this process's processor: text, checks, cut, files
    processor         seconds of processor time, children and all
    compiled          specialisations that were compiled

Rows: ``new`` kernels; ``host``: host code alone differs from a kernel that was lowered before; ``promote``:
all cases of a kernel that was lowered for the cases of a search.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from fitness import outlines
from fitness.card import Case, TensorSpec
from fitness.judging import search_cases
from fitness.lowering import Lowered, Lowering
from populations.kernel import Kernel
from populations.seeds import seeds

ROW_SUM = """import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + tl.program_id(0).to(tl.int64) * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + tl.program_id(0), tl.sum(total, axis=0) * 1.0)


def kernel_function(x):
    out = torch.empty_like(x)  # as the benchmark's cases are softmax's
    row_sum[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out
"""
FIRST = [Case("first", {}, None, False, False, True, (TensorSpec("x", (3, 5), "int8"),), (),
              (TensorSpec("out", (3, 5), "int8"),), 0)]  # fmt: skip
COLUMNS = (
    "kernel",
    "row",
    "threads",
    "sources/s",
    "wall",
    "trace",
    "compile",
    "here",
    "processor",
    "compiled",
)


def main() -> None:
    """Print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--threads", default="1,2,4", help="numbers of threads that lower at once")
    words.add_argument("--sources", type=int, default=16, help="sources of a row")
    words.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    order = words.parse_args()
    (card,) = outlines(["softmax"], "cuda")
    softmax = next(seed.source for seed in seeds("softmax") if seed.name == "whole_row")
    rows: list[list[object]] = []
    for threads in map(int, order.threads.split(",")):
        with _opened() as lowering:
            rows += _rows(lowering, "one", ROW_SUM, card.cases[:1], card.cases[:1], threads, order.sources)
        with _opened() as lowering:
            rows += _rows(
                lowering, "softmax", softmax, search_cases(card), card.cases, threads, order.sources
            )
    if order.json:
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows]))
        return
    print(
        f"{datetime.date.today()}, {platform.machine()}, {len(os.sched_getaffinity(0))} cores, load "
        f"{os.getloadavg()[0]:.1f}, Python {platform.python_version()}, Triton {metadata.version('triton')}"
    )
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(f"{x:.3g}" if isinstance(x, float) else str(x) for x in row) + " |")


def _rows(
    lowering: Lowering,
    name: str,
    source: str,
    cases: Sequence[Case],
    whole: Sequence[Case],
    threads: int,
    count: int,
) -> Iterator[list[object]]:
    new = [source.replace("1.0", f"1.{index}") for index in range(1, count + 1)]
    yield [name, "new", *_lowered(lowering, new, cases, threads)]
    yield [name, "host", *_lowered(lowering, [text + "MORE = 1\n" for text in new], cases, threads)]
    if len(whole) > len(cases):
        yield [name, "promote", *_lowered(lowering, new, whole, threads)]


def _lowered(lowering: Lowering, sources: Sequence[str], cases: Sequence[Case], threads: int) -> list[object]:
    walls = []
    lock = threading.Lock()

    def one(source: str) -> None:
        start = time.monotonic()
        made = lowering.lower(Kernel(source, "triton"), cases)
        if not isinstance(made, Lowered):
            sys.exit(f"{made.status}: {made.reason}")
        with lock:
            walls.append(time.monotonic() - start)

    before = {do: (tally.children, tally.seconds) for do, tally in lowering.tally.items()}
    start, here, everything = time.monotonic(), time.process_time(), _children_s()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, sources))
    took = time.monotonic() - start
    here, everything = time.process_time() - here, _children_s() - everything
    count = len(sources)
    spent = {do: (tally.seconds - before[do][1]) / count for do, tally in lowering.tally.items()}
    compiled = (lowering.tally["compile"].children - before["compile"][0]) / count
    return [threads, count / took, sum(walls) / count, spent["trace"], spent["compile"], here / count,
            (here + everything) / count, compiled]  # fmt: skip


@contextmanager
def _opened() -> Iterator[Lowering]:
    with tempfile.TemporaryDirectory() as folder:
        lowering = Lowering(Path(folder))
        try:
            lowering.lower(Kernel(ROW_SUM, "triton"), FIRST)  # waits until all has started
            yield lowering
        finally:
            lowering.close()


def _children_s() -> float:
    """Processor seconds of this process's children and of theirs that have ended."""
    ticks = 0
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        stat = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, stat[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
