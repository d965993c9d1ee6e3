"""At the end of a run the best kernel's exported file is run; one that does other things falls."""

# ruff: noqa: ARG002 -- stand-ins take what the seam hands them
from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from test_evo_search import SEED

import evo
import populations
from evo.summary import run_summary
from evo.tables import of_export
from evo.verifying import verified
from fitness.testing import InstantTarget
from populations import Kernel, Outcome, Stage, check
from populations.events import Exported
from populations.export_check import Agreement, ExportCheck


class Equal(InstantTarget):
    """A device on which every exported file does what was measured."""

    agreement = Agreement.EQUAL
    looked: tuple[str, ...] = ()

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(failures=0.0)

    def check_export(self, text: str, kernel: Kernel, passed: Collection[str]) -> ExportCheck:
        assert kernel.source in text or "kernel_function_unguarded" in text
        assert set(passed) == {"256x4096"}
        first = not type(self).looked
        type(self).looked += (kernel.sha,)
        return self.told(first)

    def told(self, first: bool) -> ExportCheck:
        return ExportCheck(Agreement.EQUAL, "the same launches and bytes", True, True, wall_us=2000.0)


class FirstDiffers(Equal):
    """The first file that is looked at does something else."""

    def told(self, first: bool) -> ExportCheck:
        return ExportCheck(Agreement.DIFFERENT, "launches less", False) if first else super().told(first)


class Unseen(Equal):
    """A device that cannot run files."""

    def told(self, first: bool) -> ExportCheck:
        return ExportCheck(Agreement.UNCHECKED, "there is too little device memory beside the judge's")


@pytest.fixture(autouse=True)
def afresh() -> None:
    for target in (Equal, FirstDiffers, Unseen):
        target.looked = ()


def searched(target: str, folder: Path) -> populations.Run:
    seed = folder / "seed.cpp"
    seed.write_text(SEED)
    name = f"{__name__}:{target}"
    return evo.search("instant", name, evaluations=20, seed=3, seeds=[seed], run_dir=folder / "run")


def exports(run: populations.Run) -> list[Exported]:
    return [record.event for record in run.log.records() if isinstance(record.event, Exported)]


def test_the_best_kernels_file_is_run_once_and_its_wall_time_is_told(tmp_path: Path) -> None:
    with searched("Equal", tmp_path) as run:
        assert run.best is not None
        assert [event.id for event in exports(run)] == [run.best.id]
        told = run_summary(run)["export"]
    assert (told["agreement"], told["wall_us"]) == ("equal", 2000.0)
    assert told["device_us"] < 2000.0
    assert "a call takes 2000.0 µs of wall time; the device needs" in of_export(told)


def test_a_champion_whose_file_does_other_things_is_incorrect_and_the_next_is_looked_at(
    tmp_path: Path,
) -> None:
    with searched("FirstDiffers", tmp_path) as run:
        first, second = exports(run)
        verdict = run.verdict(first.id)
        assert verdict is not None
        assert (verdict.status, verdict.stage) == (Outcome.INCORRECT, Stage.PROMOTION_GATE)
        assert verdict.reason == "what is exported is not what was measured: launches less"
        assert run.best is not None
        assert run.best.id == second.id != first.id
        assert run.export_check(second.id) == second.check
        assert check(run.path) == []


def test_a_file_that_could_not_be_run_costs_no_kernel_its_place(tmp_path: Path) -> None:
    with searched("Unseen", tmp_path) as run:
        (event,) = exports(run)
        assert run.best is not None
        assert event.id == run.best.id
        assert of_export(run_summary(run)["export"]).startswith(
            "the exported file was not run beside the plan: "
        )


def test_a_target_that_exports_what_it_measures_logs_nothing(tmp_path: Path) -> None:
    seed = tmp_path / "seed.cpp"
    seed.write_text(SEED)
    target = "fitness.testing:InstantTarget"
    with evo.search("instant", target, evaluations=3, seeds=[seed], run_dir=tmp_path / "run") as run:
        assert exports(run) == []
        assert run_summary(run)["export"] is None


@pytest.mark.parametrize("target, status", [("Equal", "measured"), ("FirstDiffers", "incorrect")])
def test_verify_runs_the_file_as_well(tmp_path: Path, target: str, status: str) -> None:
    file = tmp_path / "kernel.cpp"
    file.write_text(SEED)
    verdict, told = verified(file, "instant", f"{__name__}:{target}", True)
    assert (verdict.status, told["status"]) == (status, status)
    assert told["export"]["agreement"] == ("equal" if status == "measured" else "different")
