"""Profiles in a run's tables, and in the lines that people read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import populations
from evo.profiles import profile_lines
from populations.calibration import Roofline
from populations.events import Judged, Promoted
from populations.log import EventLog
from populations.profile import KernelProfile, main_kernel
from populations.run import Run
from populations.testing import STARTED, a_kernel, a_measurement, a_proposal

SMALL = KernelProfile(
    "merge", 2, warps=1, registers=16, shared_bytes=0, instructions=80, mix={"integer": 1.0}
)
LARGE = KernelProfile(
    "rows", 1, 8, 47, 0, 32, 5, 0.625, "registers", 400, {"fma": 0.75, "special": 0.24, "local": 0.01},
    {64: 1, 128: 4}, {128: 2},
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    first, later = a_measurement(0.1), replace(a_measurement(0.2, claim=True), profile=(SMALL, LARGE))
    events = [STARTED, a_proposal(1), Judged(1, replace(first, profile=(SMALL,))), Promoted(1, later)]
    with EventLog.create(tmp_path / "run") as log:
        for event in [*events, a_proposal(2), Judged(2, first), a_proposal(3)]:
            log.append(event, kernels=[a_kernel(id) for id in (1, 2, 3)])
    with populations.open(tmp_path / "run") as opened:
        yield opened


def test_a_run_has_a_row_for_each_device_function_of_its_latest_verdicts(run: Run) -> None:
    table = run.frame("profiles").set_index("function")
    assert list(table.index) == ["merge", "rows"]
    assert list(table["id"]) == [1, 1]
    assert table.loc["rows", "special"] == 0.24
    assert table.loc["rows", "tensor"] == 0.0
    assert table.loc["merge", "launches"] == 2


def test_an_individual_has_the_resources_of_its_largest_function(run: Run) -> None:
    table = run.frame("individuals").set_index("id")
    assert table.loc[1, ["registers", "shared_bytes", "limiter"]].tolist() == [47, 32, "registers"]
    assert table["registers"].isna().tolist() == [False, True, True]


def test_the_largest_function_of_nothing_is_none() -> None:
    assert main_kernel(()) is None


def test_lines_tell_resources_instructions_and_the_place_under_the_roofline() -> None:
    verdict = replace(a_measurement(0.1), profile=(SMALL, LARGE))
    (case,) = [case for case in verdict.cases if case.timings]
    timing = case.timings[0]
    roofline = Roofline(2 * timing.gbps, 1.0, 1.0, 1e6)
    merge, merge_mix, rows, rows_mix, place, *_ = profile_lines(verdict, roofline)
    assert merge == "merge x2: 16 registers, 0 bytes shared, 1 warp"
    assert merge_mix == "  80 instructions: integer 100 %"
    assert rows == (
        "rows: 47 registers, no spills, 32 bytes shared, 8 warps, "
        "occupancy at most 62 % (5 blocks, limited by registers)"
    )
    assert rows_mix == (
        "  400 instructions: fma 75 %, special 24 %, local 1 %; loads 1x64, 4x128; stores 2x128 bits"
    )
    assert place.startswith(f"{case.name}: 50 % of a copy's bandwidth")
    assert place.endswith("bound by memory")


def test_what_is_not_known_has_no_line() -> None:
    assert list(profile_lines(a_measurement(0.1), None)) == []
