"""Looking into a run: its best kernel, lineage, differences, tables and pictures."""

from __future__ import annotations

import subprocess
import sys
from math import exp

import pytest

import populations
from populations import Outcome, RunError
from populations.calibration import Baseline, Calibration
from populations.events import Calibrated, Judged, Promoted, Stillborn, Stopped
from populations.frames import COLUMNS
from populations.log import EventLog
from populations.testing import STARTED, a_failure, a_kernel, a_measurement, a_proposal

EAGER = Calibration((Baseline("eager", "256x4096", "warm", True, None, 1e-3, (9e-4, 1.1e-3)),), (), (), {})
EVENTS = [
    STARTED,
    Calibrated(EAGER),
    a_proposal(1, operator="seed"),
    Judged(1, a_measurement(0.1)),
    a_proposal(2, operator="seed"),
    Judged(2, a_failure()),
    Stillborn(3, "unroll", (1,), "no loop"),
    a_proposal(3, ask=4, parents=(1,)),
    a_proposal(4, ask=5, parents=(1, 3), operator="cross"),
    Judged(3, a_measurement(0.3)),
    Judged(4, a_measurement(0.7)),
    Promoted(4, a_measurement(0.6, claim=True, general=True)),
    a_proposal(5, ask=6, parents=(4,)),
]


@pytest.fixture
def run(tmp_path):
    with EventLog.create(tmp_path / "run", clock=iter(range(100, 200)).__next__) as log:
        for event in EVENTS:
            log.append(event, kernels=[a_kernel(id) for id in range(1, 6)])
    with populations.open(tmp_path / "run") as run:
        yield run


def test_the_best_kernel_has_all_that_a_notebook_asks_for(run):
    best = run.best
    assert (best.id, best.operator, best.parents, best.promoted, best.general) == (
        4,
        "cross",
        (1, 3),
        True,
        True,
    )
    assert best.speedup == pytest.approx(exp(0.62))
    assert best.fitness == 0.6
    assert best.source == a_kernel(4).source
    assert best.kernel == a_kernel(4)
    assert best.verdict.cases[1].timings[0].samples
    assert repr(best) == "<Member 4 cross: measured, 1.86x>"


def test_the_top_is_in_order(run):
    assert [one.id for one in run.top(2)] == [4, 3]
    assert [one.id for one in run.top(10)] == [4, 3, 1]


def test_every_kernel_is_there_also_the_failed_and_the_waiting(run):
    outcomes = [Outcome.MEASURED, Outcome.INCORRECT, Outcome.MEASURED, Outcome.MEASURED, None]
    assert [(one.id, one.status) for one in run.individuals()] == list(enumerate(outcomes, 1))
    assert run.evaluations == 4


def test_a_kernel_is_found_by_number_text_or_as_the_best(run):
    assert run.get(3).id == run.get("3").id == 3
    assert run.get("best").id == 4


@pytest.mark.parametrize(
    "id, complaint", [(99, "has no kernel 99: its kernels are 1 to 5"), ("fastest", "give its number")]
)
def test_a_kernel_that_is_not_there_is_named(run, id, complaint):
    with pytest.raises(RunError, match=complaint):
        run.get(id)


def test_the_verdict_is_the_latest_one(run):
    assert run.verdict(4).fitness == 0.6
    assert run.verdict(2).reason == "row 3 is wrong"
    assert run.verdict(5) is None


def test_lineage_goes_from_the_roots_to_the_kernel_with_what_each_step_gained(run):
    steps = run.lineage("best")
    assert [(step.birth.id, step.birth.operator) for step in steps] == [
        (1, "seed"),
        (3, "unroll"),
        (4, "cross"),
    ]
    assert [step.gain and round(step.gain, 6) for step in steps] == [None, 0.2, 0.3]


def test_a_difference_is_a_unified_diff(run):
    lines = run.diff(1, "best").splitlines()
    assert lines[:2] == ["--- kernel 1", "+++ kernel 4"]
    assert [line[0] for line in lines[3:]] == ["-", "+"]
    assert run.diff(1, 1) == ""


def test_what_it_was_started_with_is_there(run):
    assert (run.problem, run.settings, run.card) == ("softmax", {"evaluations": 100}, {"name": "softmax"})
    assert run.calibration == EAGER


def test_the_status_says_where_the_run_stands(run):
    status = run.status()
    counts = {"asks": 6, "stillborn": 1, "waiting": 1, "evaluations": 4, "running": False, "stopped": None}
    assert {key: status[key] for key in counts} == counts
    assert status["outcomes"]["measured"] == 3
    assert status["best"]["id"] == 4
    assert status["seed_best"] == pytest.approx(exp(0.12))
    assert status["ledger"]["wall_s"] == 12


def test_the_best_seed_is_the_one_that_was_claimed_whatever_a_screen_said_of_another(run):
    with EventLog.open(run.path) as log:
        log.append(Promoted(1, a_measurement(0.05, claim=True, general=True)))
        log.append(a_proposal(6, ask=7, operator="seed"), kernels=[a_kernel(6)])
        log.append(Judged(6, a_measurement(0.9)))
    assert [one.id for one in run.top(10) if one.operator == "seed"] == [1, 6]
    assert run.status()["seed_best"] == pytest.approx(run.get(1).speedup)


def test_a_run_that_stopped_says_why_and_one_in_progress_says_so(run):
    with EventLog.open(run.path) as log:
        log.append(Stopped("minutes"))
        assert run.status()["stopped"] == "minutes"
        assert run.status()["running"]


def test_a_run_in_progress_is_seen_as_it_grows(run):
    with EventLog.open(run.path) as log:
        log.append(Judged(5, a_measurement(0.9)))
        assert run.evaluations == 5
        log.append(Promoted(5, a_measurement(0.8, claim=True)))
        assert run.best.id == 5


def test_a_run_without_kernels_has_no_best(tmp_path):
    EventLog.create(tmp_path / "run", STARTED).close()
    with populations.open(tmp_path / "run") as run:
        assert run.best is None
        assert run.calibration is None
        assert run.status()["best"] is None
        with pytest.raises(RunError, match="no best kernel"):
            run.get("best")
        with pytest.raises(RunError, match="has no kernel 1: it has none yet"):
            run.get(1)


def test_a_run_that_was_never_started_is_named(tmp_path):
    EventLog.create(tmp_path / "run").close()
    with populations.open(tmp_path / "run") as run, pytest.raises(RunError, match="never started"):
        run.status()


@pytest.mark.parametrize("name", COLUMNS)
def test_every_frame_has_exactly_the_columns_that_are_described(run, name):
    assert list(run.frame(name).columns) == list(COLUMNS[name])


@pytest.mark.parametrize("name", COLUMNS)
def test_a_frame_has_the_same_types_when_it_is_empty(run, tmp_path, name):
    EventLog.create(tmp_path / "empty").close()
    with populations.open(tmp_path / "empty") as empty:
        assert list(empty.frame(name).dtypes) == list(run.frame(name).dtypes)


def test_the_frame_of_individuals_is_tidy(run):
    table = run.frame("individuals").set_index("id")
    assert list(table.index) == [1, 2, 3, 4, 5]
    assert table.loc[4, "parents"] == (1, 3)
    assert table.loc[3, "evaluation"] == 3
    assert table.loc[4, "judged_s"] == 10
    assert table["status"].isna().sum() == 1
    assert (table["status"] >= "correct").sum() == 3


def test_the_frame_of_samples_has_one_row_a_round(run):
    table = run.frame("samples")
    assert set(table["contender"]) == {"kernel", "eager"}
    assert len(table) == 3 * 2 * 15
    assert list(table["round"].unique()) == list(range(1, 16))


def test_the_frame_of_operators_adds_up(run):
    table = run.frame("operators").set_index("operator")
    assert table["asks"].sum() == 6
    assert table["evaluations"].sum() == 4
    assert table.loc["seed", "incorrect"] == 1
    assert table.loc["cross", "parent_gain"] == pytest.approx(0.4)


def test_the_frame_of_events_says_when_and_about_what(run):
    table = run.frame("events")
    assert list(table["seq"]) == list(range(1, 14))
    assert table["time"].iloc[0].isoformat() == "1970-01-01T00:01:40+00:00"
    assert table["id"].iloc[2] == 1


def test_a_frame_that_does_not_exist_is_named_with_those_that_do(run):
    with pytest.raises(RunError, match="no frame called 'kernels': choose one of individuals, cases"):
        run.frame("kernels")


@pytest.fixture
def ax():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot.subplots()[1]
    pyplot.close("all")


def test_the_best_so_far_never_falls_and_lasts_to_the_end(run, ax):
    from populations.plots import best_over_evaluations

    assert best_over_evaluations(run, ax) is ax
    line = ax.get_lines()[0]
    assert list(line.get_xdata()) == [1, 3, 4, 4]
    assert list(line.get_ydata()) == pytest.approx([exp(0.1), exp(0.3), exp(0.6), exp(0.6)])
    assert "×" in ax.get_ylabel()


def test_the_bars_count_every_kernel_once(run, ax):
    from populations.plots import stage_counts

    stage_counts(run, ax)
    assert sum(bar.get_width() for bar in ax.patches) == 5  # four judged, one stillborn
    assert ax.get_yticklabels()[0].get_text() == "stillborn"


@pytest.mark.usefixtures("ax")
def test_a_run_without_kernels_can_be_drawn(tmp_path):
    from populations.plots import best_over_evaluations, stage_counts

    EventLog.create(tmp_path / "run", STARTED).close()
    with populations.open(tmp_path / "run") as run:
        best_over_evaluations(run)
        stage_counts(run)


def test_importing_populations_loads_no_heavy_library():
    heavy = "{'pandas', 'matplotlib', 'numpy', 'torch', 'pytest'}"
    script = f"import populations, sys; print({heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"
