"""The search through its Python surface, on the device that answers at once."""

# ruff: noqa: ARG002 -- stand-ins take what the seam hands them
from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evo
import populations
from evo import session
from evo.folded import replayed
from evo.progress import Silent
from evo.settings import settings
from fitness.target import Built, DeviceError
from fitness.testing import InstantTarget, TargetContract
from operators.proposal import Brief, Proposal
from populations import EventLog, Kernel, Outcome, Verdict
from populations.calibration import Calibration
from populations.events import Promoted, Proposed, Resumed, Stillborn

INSTANT = "fitness.testing:InstantTarget"
SEED = """#include <cstdint>
constexpr int TILE = 64;  // tune: 16 32 64 128 256
constexpr int GRAIN = 4;  // tune: 1 2 4 8 16
extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out0[i] = x[i];
}
"""


class AddLine:
    """A user's own operator: one more declaration at the end."""

    name = "mine"
    arity = 1

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:
        line = f"static int v{rng.randrange(1000)};\n"
        return Proposal(Kernel(parents[0].source + line, "cpp"), self.name, "one more line")


class Nothing:
    """An operator whose precondition never holds."""

    name = "nothing"
    arity = 1

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:
        return None


class BreaksOnce(InstantTarget):
    """A device that dies on the third kernel of every process's first target."""

    opened = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()
        type(self).opened += 1
        self._screened = 0

    def screen(self, built: Built) -> Verdict:
        self._screened += 1
        if type(self).opened == 1 and self._screened == 3:
            raise DeviceError("the judge ended with status -9")
        return super().screen(built)


class BuildsBeside(InstantTarget):
    """A device whose builds may go on while it measures."""

    separate = True


class SaysItWasSlow(InstantTarget):
    """A device that, by its own account, took long over every claim."""

    def promote(self, built: Built) -> Verdict:
        return replace(super().promote(built), device_s=600.0)


class TakesItsTime(InstantTarget):
    """A device on which every claim takes a second."""

    def promote(self, built: Built) -> Verdict:
        time.sleep(1.0)
        return super().promote(built)


class BreaksForGood(InstantTarget):
    """A device that dies on every kernel."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def screen(self, built: Built) -> Verdict:
        raise DeviceError("the judge ended with status -9")


class OneMachineCode(InstantTarget):
    """A compiler that makes the same of every source."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(failures=0.0)

    def build(self, admission: object) -> Built | Verdict:
        built = super().build(admission)  # type: ignore[arg-type]
        assert isinstance(built, Built)
        return Built(built.kernel, built.artifact, "the one", built.traits)


@pytest.fixture
def start(tmp_path: Path) -> Path:
    file = tmp_path / "seed.cpp"
    file.write_text(SEED)
    return file


def search(
    start: Path, evaluations: int = 80, target: str = INSTANT, mutate: object = None, **more: Any
) -> populations.Run:
    toolbox = evo.toolbox("instant")
    toolbox.register("mutate", mutate or AddLine())
    run_dir = start.parent / f"run-{len(list(start.parent.iterdir()))}"
    return evo.search(
        "instant", target, evaluations=evaluations, seeds=[start], toolbox=toolbox, run_dir=run_dir, **more
    )


def born(run: populations.Run) -> list[tuple[int, int, str]]:
    return [
        (e.ask, e.id, e.source_sha) for e in (r.event for r in run.log.records()) if isinstance(e, Proposed)
    ]


def test_a_search_spends_its_evaluations_exactly_and_its_log_is_sound(start: Path) -> None:
    with search(start, evaluations=81) as run:
        assert run.evaluations == 81
        assert run.status()["stopped"] == "evaluations"
        assert populations.check(run.path) == []


def test_a_search_ends_with_a_better_kernel_than_it_started_from(start: Path) -> None:
    with search(start) as run:
        assert run.best is not None
        assert run.best.rank is not None
        assert run.best.rank > (run.get(1).rank or 0.0)


def test_what_is_shown_as_best_was_measured_for_a_claim(start: Path) -> None:
    with search(start) as run:
        assert run.best is not None
        assert run.best.promoted
        assert run.best.fitness is not None


def test_slow_claims_leave_most_of_the_time_to_the_search(start: Path) -> None:
    with search(start, evaluations=60, minutes=2.0, target=f"{__name__}:SaysItWasSlow") as run:
        assert run.status()["stopped"] == "evaluations"


def test_a_run_whose_time_is_over_leaves_closing_measurements_out_and_says_so(
    start: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = f"{__name__}:TakesItsTime"
    with search(start, minutes=0.03, finalists=12, target=slow, progress=True) as run:
        promoted = [r for r in run.log.records() if isinstance(r.event, Promoted)]
        assert 1 <= len(promoted) < 12
        assert run.best is not None
        assert run.best.promoted
    assert "no time is left to measure kernel" in capsys.readouterr().err


def test_a_users_own_operator_makes_the_children(start: Path) -> None:
    with search(start) as run:
        made = {member.operator for member in run.individuals()}
        assert "mine" in made
        assert made <= {"seed", "mine", "tune", "cross-numbers", "cross-functions"} | {
            member.operator for member in run.individuals() if len(member.parents) == 2
        }


def test_the_same_seed_makes_the_same_search_and_another_seed_another(start: Path) -> None:
    with search(start, seed=1) as one, search(start, seed=1) as two, search(start, seed=2) as three:
        assert born(one) == born(two)
        assert born(one) != born(three)


def test_a_new_structure_is_tuned_before_it_is_left(start: Path) -> None:
    with search(start) as run:
        tuned = [member for member in run.individuals() if member.operator == "tune"]
        assert len(tuned) >= 4


def test_children_inherit_tuned_numbers(start: Path) -> None:
    with search(start) as run:
        children = [m for m in run.individuals() if m.operator == "mine"]
        parents = {m.id: m for m in run.individuals()}
        numbers = [line for line in children[-1].source.splitlines() if line.startswith("constexpr")]
        inherited = [line for line in parents[children[-1].parents[0]].source.splitlines() if line in numbers]
        assert inherited == numbers


def test_asks_that_lead_nowhere_cost_no_evaluation_and_end_the_search_in_time(start: Path) -> None:
    with search(start, mutate=Nothing(), tune_evaluations=0, patience=20) as run:
        stillborn = [r.event for r in run.log.records() if isinstance(r.event, Stillborn)]
        assert run.status()["stopped"] == "exhausted"
        assert run.evaluations == 1
        assert len(stillborn) >= 20


def test_the_same_machine_code_costs_no_evaluation(start: Path) -> None:
    with search(start, target=f"{__name__}:OneMachineCode", patience=10) as run:
        reasons = {r.event.reason for r in run.log.records() if isinstance(r.event, Stillborn)}
        assert run.evaluations == 1
        assert "the same machine code as kernel 1" in reasons
        assert populations.check(run.path) == []


def test_a_device_that_breaks_once_costs_no_kernel(start: Path) -> None:
    BreaksOnce.opened = 0
    with search(start, evaluations=20, target=f"{__name__}:BreaksOnce") as run:
        assert BreaksOnce.opened == 2
        assert run.evaluations == 20
        assert populations.check(run.path) == []


class BreaksWhileMeasured(InstantTarget):
    """Its judge dies during the first calibration."""

    opened = 0

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        type(self).opened += 1

    def calibrate(self) -> Calibration:
        if self.opened == 1:
            raise DeviceError("the judge ended with status -9")
        return super().calibrate()


def test_a_device_that_breaks_while_its_baselines_are_measured_gets_a_second_chance(start: Path) -> None:
    BreaksWhileMeasured.opened = 0
    with evo.search(
        "instant",
        f"{__name__}:BreaksWhileMeasured",
        evaluations=5,
        seeds=[start],
        run_dir=start.parent / "run",
    ) as run:
        assert run.evaluations == 5
    assert BreaksWhileMeasured.opened == 2
    assert populations.check(run.path) == []


def test_a_device_that_breaks_for_good_stops_the_run_with_everything_saved(start: Path) -> None:
    with pytest.raises(DeviceError, match="the judge ended"):
        search(start, target=f"{__name__}:BreaksForGood")
    (path,) = start.parent.glob("run-*")
    with populations.open(path) as run:
        assert run.status()["waiting"] == 1
    assert populations.check(path) == []


def test_an_interrupted_run_goes_on_to_exactly_its_budget(start: Path) -> None:
    class Impatient(Silent):
        def told(self, event: object, state: populations.State) -> None:
            if state.evaluations == 31 and state.stopped is None:
                raise KeyboardInterrupt

    path = start.parent / "run"
    toolbox = evo.toolbox()
    toolbox.register("mutate", AddLine())
    chosen = settings(evaluations=60)
    with pytest.raises(session.Interrupted) as stop:
        session.start(
            "instant", chosen, Impatient(), target=INSTANT, seeds=[start], run_dir=path, toolbox=toolbox
        )
    assert (stop.value.path, stop.value.evaluations) == (path, 31)
    session.resume(path, Silent(), toolbox)
    with populations.open(path) as run:
        assert run.evaluations == 60
        assert [r.event.at_evaluations for r in run.log.records() if isinstance(r.event, Resumed)] == [31]
    assert populations.check(path) == []


def test_resuming_a_finished_run_judges_nothing(start: Path) -> None:
    with search(start) as run:
        before = [r.event for r in run.log.records() if isinstance(r.event, Promoted)]
        toolbox = evo.toolbox()
        session.resume(run.path, Silent(), toolbox)
        assert run.evaluations == 80
        assert [r.event for r in run.log.records() if isinstance(r.event, Promoted)] == before


def test_replaying_the_log_gives_the_same_population(start: Path) -> None:
    with search(start) as run, EventLog.open(run.path, readonly=True) as log:
        state, _ = replayed(log, settings(evaluations=80))
        assert state.best is not None
        assert run.best is not None
        assert state.best.id == run.best.id
        assert state.evaluations == run.evaluations
        assert state.outcomes[Outcome.MEASURED] == run.status()["outcomes"]["measured"]


def test_the_search_never_imports_torch() -> None:
    import subprocess
    import sys

    code = "import evo, evo.session, evo.command, evo.progress, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


class TestInstantTarget(TargetContract):
    @pytest.fixture
    def target(self) -> InstantTarget:
        return InstantTarget(failures=0.0)

    @pytest.fixture
    def good(self) -> Kernel:
        return Kernel(SEED, "cpp")


def test_a_search_that_builds_beside_its_measuring_spends_its_evaluations_exactly(start: Path) -> None:
    with search(start, evaluations=61, target=f"{__name__}:BuildsBeside", batch=8) as run:
        assert run.evaluations == 61
        assert populations.check(run.path) == []
