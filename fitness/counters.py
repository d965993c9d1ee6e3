"""Hardware counters of device functions, by NVIDIA's ``ncu``: what it is asked, and its answer read.

Clocks are left as they are, caches are emptied before each pass, as they are cold when the judge takes times.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PLACES = ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu", "/usr/local/bin/ncu")
METRICS = {  # field → names that metrics have had for it, the first one is asked for
    "seconds": ("gpu__time_duration.sum",),
    "dram": (
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "dram_read_bytes": ("dram__bytes_read.sum",),
    "dram_write_bytes": ("dram__bytes_write.sum",),
    "l2_hits": ("lts__t_sector_hit_rate.pct",),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "occupancy_bound": ("sm__maximum_warps_per_active_cycle_pct",),
    "issue_slots": (
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ),
    "tensor": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    ),
    "local_read_bytes": ("l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",),
    "local_write_bytes": ("l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum",),
}
SECTIONS = (
    "WarpStateStats",
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "Occupancy",
)
_STALLS = (
    re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"),
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"),
)
_UNITS = {
    "%": 0.01,
    "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0,
    "second": 1.0, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
}  # fmt: skip
_REASONS = {
    "ERR_NVGPUCTRPERM": "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM)",
    "No kernels were profiled": "no kernel of the plan came to the profiler",
    "Unknown Error on device": "ncu met an unknown error on the device",
}


@dataclass(frozen=True)
class Counters:
    """One launch of a device function. Shares are of 1; None: ncu has no such counter here.

    Attributes:
        kernel: name of the function.
        seconds: of the launch, under the profiler.
        dram: throughput of device memory as a share of its peak.
        dram_read_bytes, dram_write_bytes: moved from and to device memory.
        l2_hits: share of requests that the L2 cache answered.
        occupancy: warps that were resident as a share of what the multiprocessors hold, while active.
        occupancy_bound: the most that it could have been, by ncu's own calculation.
        issue_slots: share of cycles in which an instruction was issued.
        tensor: share of cycles in which the tensor pipe was busy.
        local_read_bytes, local_write_bytes: traffic of local memory: spills.
        stall: what warps waited for most, in ncu's words, e.g. "long_scoreboard".
        stall_share: of all the time that warps spent between two of their instructions.
    """

    kernel: str
    seconds: float | None = None
    dram: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    l2_hits: float | None = None
    occupancy: float | None = None
    occupancy_bound: float | None = None
    issue_slots: float | None = None
    tensor: float | None = None
    local_read_bytes: float | None = None
    local_write_bytes: float | None = None
    stall: str | None = None
    stall_share: float | None = None


def profiler() -> Path | None:
    """Where ncu is; None where it is not."""
    on_path = shutil.which("ncu")
    if on_path is not None:
        return Path(on_path)
    found = (path for place in PLACES for path in sorted(Path("/").glob(place[1:]), reverse=True))
    return next(found, None)


def commands(ncu: Path, kernels: Iterable[str], log: Path, watched: list[str]) -> Iterator[list[str]]:
    """Ways to ask, the best first: all that is wanted; whole sections, should a metric lack; the time alone.

    Args:
        kernels: names of device functions; what else the process launches is left out.
        log: the file that ncu writes to.
        watched: the command to watch.
    """
    names = "|".join(sorted({re.escape(name) for name in kernels}))
    head = [str(ncu), "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log), "-f"]
    head += ["--clock-control", "none", "--profile-from-start", "off", "--kernel-name", f"regex:^({names})$"]
    wanted = ",".join(spelt[0] for spelt in METRICS.values())
    sections = [word for section in SECTIONS for word in ("--section", section)]
    for what in (
        ["--metrics", wanted, "--section", SECTIONS[0]],
        sections,
        ["--metrics", METRICS["seconds"][0]],
    ):
        yield [*head, *what, *watched]


def read(text: str) -> list[Counters]:
    """The launches in ncu's raw page, in order; none where it holds no table.

    Whatever stands around the table is passed over: ncu says how far it is on lines that begin with "==", and
    the watched process may print as well.

    Args:
        text: what ``--csv --page raw`` wrote: a row of names, a row of units, one row a launch.
    """
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    start = next((n for n, row in enumerate(rows) if "Kernel Name" in row and "ID" in row), None)
    if start is None or len(rows) < start + 3:
        return []
    names, units = rows[start], rows[start + 1]
    launches = [row for row in rows[start + 2 :] if len(row) == len(names) and row != names]
    if len(units) != len(names):
        return []
    return [_launch(dict(zip(names, zip(row, units, strict=True), strict=True))) for row in launches]


def reason(text: str) -> str:
    """Why ncu told nothing, in one line, from all that it and the process said."""
    for mark, words in _REASONS.items():
        if mark in text:
            return words
    errors = [
        line
        for line in re.findall(r"^==ERROR==\s*(.+)$", text, re.MULTILINE)
        if "returned an error code" not in line  # the process said why
    ]
    said = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("==")]
    last = errors[0] if errors else said[-1] if said else "nothing"
    return f"ncu says: {' '.join(last.split())[:200]}"


def _launch(row: Mapping[str, tuple[str, str]]) -> Counters:
    found = {
        field: next((number for name in spelt if (number := _scaled(row.get(name))) is not None), None)
        for field, spelt in METRICS.items()
    }
    stalls = next((seen for form in _STALLS if (seen := dict(_stalls(row, form)))), {})
    waits = {name: value for name, value in stalls.items() if name != "selected"}
    total = sum(stalls.values())
    most = max(waits, key=lambda name: waits[name], default=None)
    share = waits[most] / total if most is not None and total > 0 else None
    return Counters(row["Kernel Name"][0], **found, stall=most, stall_share=share)


def _stalls(row: Mapping[str, tuple[str, str]], form: re.Pattern[str]) -> Iterator[tuple[str, float]]:
    """Stall reasons and how long each was, in a unit that all share."""
    for name, (text, _unit) in row.items():
        found, number = form.fullmatch(name), _number(text)
        if found and number is not None and not found[1].endswith("_not_issued"):
            yield found[1], number


def _scaled(cell: tuple[str, str] | None) -> float | None:
    """A cell in seconds, bytes or shares; None where there is none, or no number in a known unit."""
    if cell is None:
        return None
    number, scale = _number(cell[0]), _UNITS.get(cell[1].strip())
    return None if number is None or scale is None else number * scale


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
