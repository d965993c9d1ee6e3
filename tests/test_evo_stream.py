"""A search whose builds go on while the device measures, on devices that answer at once or a little later."""

# ruff: noqa: ARG002 -- stand-ins take what the seam hands them
from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from test_evo_search import SEED, AddLine, born

import evo
import populations
from evo import session
from evo.course import credit
from evo.progress import Silent
from evo.settings import settings
from fitness.target import Admission, Alike, Built, DeviceError
from fitness.testing import InstantTarget
from populations import Verdict
from populations.events import Event, Promoted, Stillborn
from populations.state import OperatorRecord, State


class Beside(InstantTarget):
    """Builds disturb no measuring."""

    separate = True


class Unpunctual(Beside):
    """Builds and screenings take what they take, differently in each run."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._rng = Random()

    def build(self, admission: Admission) -> Built | Verdict:
        time.sleep(self._rng.random() * 0.02)
        return super().build(admission)

    def screen(self, built: Built) -> Verdict:
        time.sleep(self._rng.random() * 0.004)
        return super().screen(built)


class BreaksOnce(Beside):
    """Its first judge dies on the third kernel; whatever is asked of that one afterwards is told so."""

    opened = 0

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__()
        type(self).opened += 1
        self._first, self._screened = self.opened == 1, 0

    def screen(self, built: Built) -> Verdict:
        self._screened += 1
        if self._first and self._screened >= 3:
            raise DeviceError("the judge ended with status -9")
        return super().screen(built)


class TileIsIdle(Beside):
    """A compiler that makes the same whatever TILE is."""

    def build(self, admission: Admission) -> Built | Verdict:
        built = super().build(admission)
        if not isinstance(built, Built):
            return built
        return replace(built, artifact_sha=re.sub(r"TILE = \d+", "", admission.kernel.source))


class OneSpeed(Beside):
    """Kernels differ, but not in what is timed."""

    whole = 0

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(failures=0.0)

    def build_unless(self, admission: Admission, known: Callable[[str], bool]) -> Built | Alike | Verdict:
        if known("the one"):
            return Alike("the one")
        type(self).whole += 1
        built = super().build(admission)
        return replace(built, timed_sha="the one") if isinstance(built, Built) else built


def search(folder: Path, target: type[InstantTarget], evaluations: int = 60, **more: Any) -> populations.Run:
    seed = folder / "seed.cpp"
    seed.write_text(SEED)
    toolbox = evo.toolbox("instant")
    toolbox.register("mutate", AddLine())
    return evo.search(
        "instant",
        f"{__name__}:{target.__name__}",
        evaluations=evaluations,
        seeds=[seed],
        toolbox=toolbox,
        run_dir=folder / f"run-{len(list(folder.iterdir()))}",
        batch=4,
        **more,
    )


def test_the_pace_of_builds_and_screenings_decides_nothing(tmp_path: Path) -> None:
    with search(tmp_path, Beside) as prompt, search(tmp_path, Unpunctual) as late:
        assert born(prompt) == born(late)
        assert populations.check(late.path) == []


def test_a_device_that_breaks_with_others_waiting_for_it_is_opened_once_more(tmp_path: Path) -> None:
    BreaksOnce.opened = 0
    with search(tmp_path, BreaksOnce, evaluations=20) as run:
        assert BreaksOnce.opened == 2
        assert run.evaluations == 20
        assert populations.check(run.path) == []


def test_what_is_shown_as_best_was_measured_for_a_claim(tmp_path: Path) -> None:
    with search(tmp_path, Beside) as run:
        assert run.best is not None
        assert run.best.promoted
        promoted = [r.event.id for r in run.log.records() if isinstance(r.event, Promoted)]
        assert len(promoted) > 4  # more than the finalists


def test_the_work_of_a_measured_kernel_is_built_no_further_and_not_judged(tmp_path: Path) -> None:
    OneSpeed.whole = 0
    with search(tmp_path, OneSpeed, patience=30) as run:
        reasons = [r.event.reason for r in run.log.records() if isinstance(r.event, Stillborn)]
        assert run.evaluations == 1
        assert "the same work on what is timed as kernel 1" in reasons
        assert OneSpeed.whole == 1
        assert populations.check(run.path) == []


def test_numbers_that_changed_nothing_are_not_tried_again(tmp_path: Path) -> None:
    with search(tmp_path, TileIsIdle, evaluations=80) as run:
        twins = [r.event for r in run.log.records() if isinstance(r.event, Stillborn) and r.event.twin]
        tuned = [(twin.parents, twin.numbers) for twin in twins if twin.operator == "tune"]
        assert tuned
        assert len(tuned) == len(set(tuned))
        assert len(twins) == len({twin.normal_sha for twin in twins})


def test_a_search_that_was_stopped_goes_on_to_exactly_its_budget(tmp_path: Path) -> None:
    class Impatient(Silent):
        def told(self, event: Event, state: State) -> None:
            if state.evaluations == 21 and state.stopped is None:
                raise KeyboardInterrupt

    seed, path = tmp_path / "seed.cpp", tmp_path / "run"
    seed.write_text(SEED)
    toolbox = evo.toolbox()
    toolbox.register("mutate", AddLine())
    target = f"{__name__}:Unpunctual"
    chosen = settings(evaluations=50, batch=4)
    with pytest.raises(session.Interrupted):
        session.start(
            "instant", chosen, Impatient(), target=target, seeds=[seed], run_dir=path, toolbox=toolbox
        )
    session.resume(path, Silent(), toolbox)
    with populations.open(path) as run:
        assert run.evaluations == 50
    assert populations.check(path) == []


def test_an_operator_whose_children_are_known_already_is_used_less() -> None:
    records = {"fresh": OperatorRecord(asks=20), "stale": OperatorRecord(asks=20, stillborn=20)}
    shares = credit(records)
    assert shares["stale"] < shares["fresh"] / 2
