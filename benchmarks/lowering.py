"""How fast Triton sources become launch plans.

    python benchmarks/lowering.py [--threads 1,2,4] [--sources 16]

Needs torch and Triton, but no GPU; two minutes on a quiet machine. Kernels: a row reduction with one
specialisation, and two of the expert softmaxes with its real cases, of which each row length may be a
specialisation. Columns, over so many different sources lowered by so many threads:

    sources/s         finished in a second of wall time
    wall              mean seconds of one ``lower()``
    trace, compile    seconds that its children took, in sum: side by side they may exceed the wall
    here              seconds of this process's processor: text, checks, cut, files
    user, system      seconds of processor time, children and all
    compiled          specialisations that were compiled
    children          processes that did so

Rows: ``new`` kernels; ``host``: host code alone differs from a kernel that was lowered before; ``promote``:
all cases of a kernel that was lowered for the cases of a search.

A second table is of compiling children that have nothing to do: how many end in a second with so many in
flight, and milliseconds of each: its wall time, and processor time.
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
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from fitness import outlines
from fitness.card import Case, TensorSpec
from fitness.judging import search_cases
from fitness.lowering import Lowered, Lowering
from fitness.lowering.children import ChildError, Children
from fitness.lowering.confinement import Limits
from fitness.lowering.jobs import COMPILE, CompileJob
from fitness.plan import KernelSpec
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
    "user",
    "system",
    "compiled",
    "children",
)
EMPTY = ("in flight", "children/s", "wall_ms", "user_ms", "system_ms")


def main() -> None:
    """Print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--threads", default="1,2,4", help="numbers of threads that lower at once")
    words.add_argument("--sources", type=int, default=16, help="sources of a row")
    words.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    order = words.parse_args()
    (card,) = outlines(["softmax"], "cuda")
    softmaxes = {seed.name: seed.source for seed in seeds("softmax") if seed.name in ("whole_row", "online")}
    rows: list[list[object]] = []
    for threads in map(int, order.threads.split(",")):
        with _opened() as lowering:
            rows += _rows(lowering, "one", ROW_SUM, card.cases[:1], card.cases[:1], threads, order.sources)
        for name, source in softmaxes.items():
            with _opened() as lowering:
                rows += _rows(lowering, name, source, search_cases(card), card.cases, threads, order.sources)
    empty = _empty([1, 4, 16], 12 * order.sources)
    if order.json:
        tables = {"lowering": (COLUMNS, rows), "empty": (EMPTY, empty)}
        print(json.dumps({name: [dict(zip(columns, row, strict=True)) for row in rows]
                          for name, (columns, rows) in tables.items()}))  # fmt: skip
        return
    print(
        f"{datetime.date.today()}, {platform.machine()}, {len(os.sched_getaffinity(0))} cores, load "
        f"{os.getloadavg()[0]:.1f}, Python {platform.python_version()}, Triton {metadata.version('triton')}"
    )
    _print(COLUMNS, rows)
    print()
    _print(EMPTY, empty)


def _print(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
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

    before = {do: replace(tally) for do, tally in lowering.tally.items()}
    start, here, everything = time.monotonic(), time.process_time(), _processor_s()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, sources))
    took = time.monotonic() - start
    here, everything = time.process_time() - here, _since(everything)
    count = len(sources)
    spent = {do: (tally.seconds - before[do].seconds) / count for do, tally in lowering.tally.items()}
    made, was = lowering.tally["compile"], before["compile"]
    return [threads, count / took, sum(walls) / count, spent["trace"], spent["compile"], here / count,
            *(seconds / count for seconds in everything),
            (made.jobs - was.jobs) / count, (made.children - was.children) / count]  # fmt: skip


def _empty(flights: Sequence[int], count: int) -> list[list[object]]:
    """Of children that find at once that there is nothing to compile."""
    spec = KernelSpec("nothing", (), {}, (), (), {})
    job = COMPILE.dump_json(CompileJob(text="", dotted={"triton.nothing": 1}, spec=spec))
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        children = Children(
            Path(folder, "log"), arch="sm_90", sandboxed=True, limits=Limits(), most=max(flights)
        )

        def one(name: str) -> None:
            Path(folder, name).mkdir()
            children.ask("compile", Path(folder, name), job)

        try:
            one("first")
            with suppress(ChildError):
                children.ask("trace", Path(folder), b"")  # waits until all has started
            for flight in flights:
                start, spent = time.monotonic(), _processor_s()
                with ThreadPoolExecutor(flight) as pool:
                    list(pool.map(one, [f"{flight}-{index}" for index in range(count)]))
                took = time.monotonic() - start
                each = [1000 * seconds / count for seconds in _since(spent)]
                rows.append([flight, count / took, 1000 * flight * took / count, *each])
        finally:
            children.close()
    return rows


@contextmanager
def _opened() -> Iterator[Lowering]:
    with tempfile.TemporaryDirectory() as folder:
        lowering = Lowering(Path(folder))
        try:
            lowering.lower(Kernel(ROW_SUM, "triton"), FIRST)  # waits until all has started
            yield lowering
        finally:
            lowering.close()


def _processor_s() -> list[float]:
    """User and system seconds of this process, its children, and those of theirs that have ended."""
    mine = os.times()
    user, system = mine.user, mine.system
    tick = os.sysconf("SC_CLK_TCK")
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        stat = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
        user += (int(stat[11]) + int(stat[13])) / tick
        system += (int(stat[12]) + int(stat[14])) / tick
    return [user, system]


def _since(then: Sequence[float]) -> list[float]:
    return [now - before for now, before in zip(_processor_s(), then, strict=True)]


if __name__ == "__main__":
    main()
