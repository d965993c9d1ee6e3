"""Hardware counters: how ncu is asked, how its raw page is read, what is said where it does not answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_evo_command import kernel_evo

import evo.profiling
from evo.profiling import lines
from fitness import counters, profiling
from fitness.counters import METRICS, Counters, commands, read, reason
from populations.calibration import Roofline
from populations.events import Judged, Proposed, Started
from populations.kernel import Kernel
from populations.log import EventLog
from populations.profile import KernelProfile
from populations.seeds import seeds
from populations.testing import a_measurement

LEFT = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
        "Grid Size", "Device", "CC")  # fmt: skip
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
CELLS = {
    METRICS["seconds"][0]: ("ns", "61,216"),
    METRICS["dram"][0]: ("%", "85.5"),
    METRICS["dram_read_bytes"][0]: ("byte", "134,217,728"),
    METRICS["dram_write_bytes"][0]: ("byte", "134217728.00"),
    METRICS["l2_hits"][0]: ("%", "50.1"),
    METRICS["occupancy"][0]: ("%", "58.97"),
    METRICS["occupancy_bound"][0]: ("%", "62.50"),
    METRICS["issue_slots"][0]: ("%", "21"),
    METRICS["tensor"][0]: ("%", "0"),
    METRICS["local_read_bytes"][0]: ("byte", "0"),
    METRICS["local_write_bytes"][0]: ("byte", "32"),
    STALL.format("long_scoreboard"): ("inst", "6.0"),
    STALL.format("long_scoreboard_not_issued"): ("inst", "5.9"),
    STALL.format("barrier"): ("inst", "3.0"),
    STALL.format("selected"): ("inst", "1.0"),
}
READ = Counters(
    "softmax_rows", pytest.approx(61.216e-6), pytest.approx(0.855), 134217728.0, 134217728.0,
    pytest.approx(0.501), pytest.approx(0.5897), 0.625, pytest.approx(0.21), 0.0, 0.0, 32.0,
    "long_scoreboard", pytest.approx(0.6),
)  # fmt: skip


def row(*cells: str) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def page(cells: dict[str, tuple[str, str]], kernels: tuple[str, ...] = ("softmax_rows",)) -> str:
    """ncu's raw page: names, units, and a row a launch, between what else it says."""
    rest = ("1", "7", "(256, 1, 1)", "(8192, 1, 1)", "0", "9.0", *(text for _, text in cells.values()))
    launches = [
        row(str(n), "77", "python3.12", "127.0.0.1", kernel, *rest) for n, kernel in enumerate(kernels)
    ]
    head = [row(*LEFT, *cells), row(*[""] * len(LEFT), *(unit for unit, _ in cells.values()))]
    return "\n".join(
        ["==PROF== Connected to process 77 (/usr/bin/python3.12)",
         '==PROF== Profiling "softmax_rows" - 0: 0%....50%....100% - 12 passes',
         *head, *launches, "==PROF== Disconnected from process 77"]
    )  # fmt: skip


def test_a_page_is_read_in_seconds_bytes_and_shares() -> None:
    assert read(page(CELLS)) == [READ]


def test_lines_that_are_no_table_are_passed_over() -> None:
    text = 'a warning, of torch\n"quoted", but not of ncu\n' + page(CELLS) + "\nbye\n"
    assert read(text) == [READ]


def test_each_launch_has_its_entry() -> None:
    assert [one.kernel for one in read(page(CELLS, ("parts", "merge", "merge")))] == [
        "parts",
        "merge",
        "merge",
    ]


def test_a_counter_that_this_chip_lacks_is_not_told() -> None:
    some = {**CELLS, METRICS["tensor"][0]: ("", "n/a"), METRICS["dram"][0]: ("furlong", "3")}
    del some[METRICS["l2_hits"][0]]
    (found,) = read(page(some))
    assert (found.tensor, found.dram, found.l2_hits, found.occupancy) == (None, None, None, READ.occupancy)


def test_a_counter_of_another_name_takes_its_place() -> None:
    some = {**CELLS, METRICS["dram"][1]: ("%", "44")}
    del some[METRICS["dram"][0]]
    (found,) = read(page(some))
    assert found.dram == pytest.approx(0.44)


def test_other_units_are_the_same_time() -> None:
    (found,) = read(page({METRICS["seconds"][0]: ("usecond", "61.216")}))
    assert found.seconds == READ.seconds
    assert found.stall is None


@pytest.mark.parametrize(
    "text", ["", "==ERROR== nothing", row(*LEFT, "a"), '"', row(*LEFT) + "\n" + row("1")]
)
def test_what_is_no_page_has_no_launches(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access …", "only administrators"),
        ("==WARNING== No kernels were profiled.", "no kernel of the plan came to the profiler"),
        ("==PROF== a\n==ERROR== Failed to find metric a.b", "ncu says: Failed to find metric a.b"),
        (
            "==ERROR== The application returned an error code (1).\n\nCUDA out of memory\n",
            "CUDA out of memory",
        ),
        ("", "ncu says: nothing"),
    ],
)
def test_a_failure_is_told_in_one_line(text: str, words: str) -> None:
    assert words in reason(text)
    assert "\n" not in reason(text)


def test_clocks_are_left_alone_and_only_the_plans_kernels_are_looked_at() -> None:
    for command in commands(Path("/ncu"), ["rows", "a.b"], Path("log"), ["python"]):
        words = " ".join(command)
        assert "--clock-control none" in words
        assert r"--kernel-name regex:^(a\.b|rows)$" in words
        assert words.endswith(" python")


SCRIPT = """#!/bin/sh
while [ "$1" != "--log-file" ]; do shift; done
log=$2
case "$*" in
*{refused}*) echo "==ERROR== Failed to find metric {refused}" > "$log"; exit 1 ;;
esac
cat {page} > "$log"
"""


def profiled(folder: Path) -> profiling.Profiled:
    source = next(one.source for one in seeds("softmax", "triton") if one.name == "whole_row")
    found = profiling.profiled(Kernel(source, "triton"), "softmax", folder=folder / "low", arch="sm_90")
    assert isinstance(found, profiling.Profiled)
    return found


def test_a_metric_that_this_ncu_does_not_know_is_not_insisted_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script stands where ncu would: it refuses one metric, and answers with a page, running nothing."""
    (tmp_path / "page.csv").write_text(page(CELLS))
    script = tmp_path / "ncu"
    script.write_text(SCRIPT.format(refused=METRICS["tensor"][0], page=tmp_path / "page.csv"))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = profiled(tmp_path)
    assert found.counters == (READ,)
    assert [one.name for one in found.static] == ["softmax_rows"]
    assert found.said.count("\nstatus ") == 2


def test_without_ncu_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(counters, "PLACES", ())
    assert counters.profiler() is None


def a_run(folder: Path, kernel: Kernel) -> Path:
    started = Started("softmax", "cuda", 0, {"search": {}, "sandboxed": True}, {"name": "softmax"})
    proposed = Proposed(1, 1, kernel.sha, kernel.sha, kernel.language, (), "seed", "a seed")
    with EventLog.create(folder / "run", started) as log:
        log.append(proposed, Judged(1, a_measurement(0.1)), kernels=[kernel])
    return folder / "run"


def test_the_command_tells_what_it_can_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evo.profiling, "gpu", lambda: False)
    kernel = Kernel(seeds("softmax", "triton")[0].source, "triton")
    said = kernel_evo("profile", a_run(tmp_path, kernel), "--json")
    told = json.loads(said.stdout)
    assert said.returncode == 1
    assert (told["counters"], told["reason"], told["roofline"]) == (None, "there is no GPU here", None)
    assert told["static"][0]["registers"] > 0


def test_what_is_known_is_told_in_lines() -> None:
    roofline = Roofline(4000.0, 4200.0, 3900.0, 800.0)
    device = profiling.Device("NVIDIA H200", "sm_90", roofline)
    whole = read(page(CELLS))[0]
    static = (KernelProfile("softmax_rows", 1, registers=47), KernelProfile("merge", 1))
    found = profiling.Profiled("8x8", static, (whole, Counters("merge", stall="wait")), None)
    said = list(lines(device, found, None))
    assert said[0] == "softmax_rows: 47 registers"
    assert said[2] == "NVIDIA H200: copy 4000, read 4200, write 3900 GB/s; product 800 TFLOP/s"
    assert said[3] == (
        "softmax_rows: 61.2 µs, memory at 86 % of its peak, 134.2 MB read and 134.2 MB written, "
        "L2 hits 50 %, occupancy 59 %, of at most 62 %, issue slots 21 %, tensor pipe 0 %, "
        "local memory 0.0 MB, waits most for long_scoreboard (60 %)"
    )
    assert said[4] == "merge: nothing was counted"


def test_a_kernel_in_another_language_has_no_profile(tmp_path: Path) -> None:
    said = kernel_evo("profile", a_run(tmp_path, Kernel("int x;", "cpp")))
    assert said.returncode == 2
    assert "is no Triton kernel" in said.stderr
