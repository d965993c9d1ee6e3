"""A measured roofline is kept per device, driver and torch, and tells where a kernel stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fitness.roofline import kept_rooflines, roofline
from populations.calibration import Calibration, Floor, Roofline

HERE = {"device": "NVIDIA H200", "driver": "570.1", "torch": "2.11.0"}
MEASURED = Roofline(copy_gbps=4000.0, read_gbps=4200.0, write_gbps=3900.0, product_tflops=800.0)


def never() -> Roofline:
    raise AssertionError("measured although it was kept")


def test_it_is_measured_once(tmp_path: Path) -> None:
    assert roofline(HERE, lambda: MEASURED, tmp_path) == MEASURED
    assert roofline(HERE, never, tmp_path) == MEASURED
    assert [kept.identity for kept in kept_rooflines(tmp_path)] == [HERE]


def test_another_driver_is_measured_anew(tmp_path: Path) -> None:
    roofline(HERE, lambda: MEASURED, tmp_path)
    other = replace(MEASURED, copy_gbps=3000.0)
    assert roofline({**HERE, "driver": "580.2"}, lambda: other, tmp_path) == other
    assert len(kept_rooflines(tmp_path)) == 2


def spoilt(change: Callable[[dict[str, dict[str, object]]], object]) -> Callable[[str], str]:
    def spoil(text: str) -> str:
        data = json.loads(text)
        change(data)
        return json.dumps(data)

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-20],
        lambda _: "",
        spoilt(lambda data: data["roofline"].update(copy_gbps=0.0)),
        spoilt(lambda data: data["roofline"].update(copy_gbps="NaN")),
        spoilt(lambda data: data["roofline"].pop("copy_gbps")),
        spoilt(lambda data: data["identity"].update(driver="another")),
    ],
)
def test_a_damaged_file_is_measured_anew(tmp_path: Path, spoil: Callable[[str], str]) -> None:
    roofline(HERE, lambda: MEASURED, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(spoil(path.read_text()))
    other = replace(MEASURED, copy_gbps=3000.0)
    assert roofline(HERE, lambda: other, tmp_path) == other
    assert roofline(HERE, never, tmp_path) == other


def test_a_folder_that_cannot_be_written_costs_a_measurement_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert roofline(HERE, lambda: MEASURED, tmp_path / "file" / "below") == MEASURED


@pytest.mark.parametrize(
    ("gbps", "tflops", "bandwidth", "rate", "bound"),
    [
        (3600.0, None, 0.9, None, "memory"),
        (3600.0, 4.0, 0.9, 0.005, "memory"),
        (400.0, 600.0, 0.1, 0.75, "compute"),
    ],
)
def test_a_kernel_is_bound_by_the_roof_that_it_is_nearer_to(
    gbps: float, tflops: float | None, bandwidth: float, rate: float | None, bound: str
) -> None:
    position = MEASURED.position(gbps, tflops)
    assert (position.bandwidth, position.rate, position.bound) == (bandwidth, rate, bound)


def test_a_calibration_tells_the_roofline_of_its_floors() -> None:
    floor = Floor("a", "cold", 1e-3, 100.0)
    assert Calibration((), (), (floor,), {}).roofline is None
    assert Calibration((), (), (floor, replace(floor, roofline=MEASURED)), {}).roofline == MEASURED
