"""State is a fold over events: what it counts, that it equals the tables, and that it stays small."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from populations import Outcome, RunError, State, check
from populations import open as open_run
from populations.calibration import Calibration
from populations.events import Calibrated, Event, Judged, Promoted, Proposed, Resumed, Stillborn, Stopped
from populations.kernel import Kernel
from populations.log import EventLog
from populations.testing import STARTED, a_failure, a_kernel, a_life, a_measurement, a_proposal

MACHINE = Calibration((), (), (), {"model": "a small machine"})


@pytest.fixture
def log(tmp_path):
    with EventLog.create(tmp_path / "run") as log:
        yield log


def fold(log: EventLog, *events: Event) -> State:
    log.append(*events, kernels=[a_kernel(n) for n in range(1, 10)])
    return State.replay(log)


def test_a_fresh_state_begins_at_one(log):
    state = State.replay(log)
    assert (state.next_ask, state.next_id, state.evaluations, state.best) == (1, 1, 0, None)


def test_a_life_is_folded(log):
    state = fold(log, *a_life())
    assert state.started == STARTED
    assert (state.next_ask, state.next_id, state.asks, state.evaluations) == (3, 3, 2, 2)
    assert state.outcomes == {Outcome.INCORRECT: 1, Outcome.MEASURED: 1}
    assert state.best is state.archive.best
    assert state.best.id == 2
    assert state.best.kernel == a_kernel(2)
    assert state.stopped == "evaluations"
    assert state.device_s == pytest.approx(0.11)


def test_what_was_proposed_and_not_judged_waits_oldest_first(log):
    state = fold(log, STARTED, *(a_proposal(id) for id in (1, 2, 3)), Judged(2, a_failure()))
    assert list(state.waiting) == [1, 3]
    assert state.waiting[3] == a_proposal(3)


def test_a_proposal_is_known_from_then_on(log):
    state = fold(log, STARTED, a_proposal(1))
    assert state.seen(a_kernel(1).sha)
    assert not state.seen(a_kernel(2).sha)


def test_a_resume_lifts_the_stop_and_the_pause_is_not_counted(log):
    log.append(STARTED, time=100.0)
    log.append(Stopped("interrupted"), time=130.0)
    log.append(Resumed(0), time=1000.0)
    log.append(Stillborn(1, "unroll", (), "no loop"), time=1005.0)
    state = State.replay(log)
    assert state.stopped is None
    assert state.wall_s == 35.0
    with open_run(log.folder) as run:
        assert run.ledger()["wall_s"] == 35.0


def test_the_latest_calibration_counts(log):
    assert fold(log, STARTED, Calibrated(MACHINE)).calibration == MACHINE


def test_an_operator_is_credited_for_beating_parents_and_records(log):
    state = fold(
        log, STARTED,
        a_proposal(1, operator="seed"), Judged(1, a_measurement(0.1)),
        a_proposal(2, operator="seed"), Judged(2, a_measurement(0.5)),
        a_proposal(3, parents=(1,)), Judged(3, a_measurement(0.3)),
        a_proposal(4, parents=(1, 2)), Judged(4, a_measurement(0.7)),
        a_proposal(5, parents=(4,)), Judged(5, a_failure()),
        Stillborn(6, "unroll", (4,), "no loop"),
    )  # fmt: skip
    record = state.operators["unroll"]
    assert (record.asks, record.stillborn) == (4, 1)
    assert record.evaluations == {Outcome.MEASURED: 2, Outcome.INCORRECT: 1}
    assert (record.over_parents, record.parent_gain) == (2, pytest.approx(0.4))
    assert (record.records, record.record_gain) == (1, pytest.approx(0.2))
    assert state.operators["seed"].records == 1


def test_a_promoted_claim_is_shown_before_a_luckier_screening(log):
    state = fold(
        log, STARTED,
        a_proposal(1), Judged(1, a_measurement(0.4)),
        a_proposal(2), Judged(2, a_measurement(0.9)),
        Promoted(1, a_measurement(0.35, claim=True)),
    )  # fmt: skip
    assert state.best.id == 1
    assert state.archive.best.id == 2
    assert state.champion(1)
    assert not state.champion(2)
    assert state.rank(1) == 0.35


def test_a_promotion_that_fails_takes_the_kernel_out(log):
    state = fold(log, STARTED, a_proposal(1), Judged(1, a_measurement(0.4)), Promoted(1, a_failure()))
    assert state.best is None
    assert state.rank(1) is None
    assert len(state.archive) == 0


def test_a_kernel_can_be_promoted_after_it_left_the_archive(log):
    log.append(
        STARTED, a_proposal(1), Judged(1, a_measurement(0.4)), a_proposal(2), Judged(2, a_measurement(0.5)),
        Promoted(1, a_measurement(0.6, claim=True)), kernels=[a_kernel(1), a_kernel(2)],
    )  # fmt: skip
    state = State.replay(log, capacity=1)
    assert [one.id for one in state.archive] == [1]
    assert state.best.id == 1


def test_a_promotion_that_fails_lets_those_back_in_that_its_kernel_kept_out(log):
    log.append(STARTED, kernels=[a_kernel(id) for id in range(1, 5)])
    for id in range(1, 5):
        log.append(a_proposal(id), Judged(id, a_measurement(id / 10)))
    log.append(Promoted(4, a_failure(Outcome.TIMED_OUT)), Promoted(3, a_measurement(0.05)))
    state = State.replay(log, capacity=2, per_structure=1, structure=lambda kernel: kernel.language)
    assert [one.id for one in state.archive] == [2]
    assert state.best.verdict.rank == 0.2
    with open_run(log.folder) as run:
        assert run.best.id == state.best.id


def test_structures_are_asked_of_the_kernel(log):
    log.append(STARTED, kernels=[a_kernel(id) for id in range(1, 6)])
    for id in range(1, 6):
        log.append(a_proposal(id), Judged(id, a_measurement(id / 10)))
    state = State.replay(log, per_structure=2, structure=lambda kernel: kernel.language)
    assert [one.id for one in state.archive] == [5, 4]


@pytest.mark.parametrize(
    "impossible", [Judged(1, a_failure()), Promoted(2, a_failure()), Judged(7, a_failure())]
)
def test_an_event_that_cannot_follow_is_refused(log, impossible):
    state = fold(log, STARTED, a_proposal(1), Judged(1, a_failure()), a_proposal(2))
    with pytest.raises(ValueError, match="kernel"):
        state.apply(impossible)


def test_a_replay_names_the_event_that_makes_no_sense(log):
    log.append(STARTED)
    log.db.execute("INSERT INTO events SELECT 2, 0.0, 'judged', ?", [_body(Judged(1, a_failure()))])
    with pytest.raises(RunError, match=r"event 2 makes no sense: kernel 1 was .*never proposed"):
        State.replay(log)


def _body(event: Event) -> str:
    from populations.events import dump

    return dump(event).decode()


# A run as a list of moves; each is made into the event that it can be at that point.
RANKS = st.floats(-1, 1).map(lambda x: round(x, 2))
VERDICTS = st.one_of(
    st.sampled_from(list(Outcome)[:-1]).map(a_failure),
    st.builds(a_measurement, RANKS, st.booleans(), st.sampled_from([True, False, None]), st.just(3)),
)
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["propose", "judge", "judge", "promote", "stillborn", "resume"]),
        VERDICTS,
        st.integers(0, 99),
    ),
    max_size=40,
)


def events_of(moves) -> list[Event]:
    events, judged, waiting, asks, ids = [STARTED], [], [], 0, 0
    for move, verdict, pick in moves:
        if move in ("propose", "stillborn"):
            asks += 1
        if move == "propose":
            parents = (judged[pick % len(judged)],) if judged else ()
            ids += 1
            events.append(a_proposal(ids, asks, parents, "unroll" if parents else "seed"))
            waiting.append(ids)
        elif move == "stillborn":
            events.append(Stillborn(asks, "tile", (), "no loop"))
        elif move == "judge" and waiting:
            judged.append(waiting.pop(pick % len(waiting)))
            events.append(Judged(judged[-1], verdict))
        elif move == "promote" and judged:
            events.append(Promoted(judged[pick % len(judged)], verdict))
        elif move == "resume":
            events.append(Resumed(len(judged)))
    return events


@settings(max_examples=60, deadline=None)
@given(MOVES)
def test_the_fold_equals_the_tables_and_the_live_state(moves):
    with tempfile.TemporaryDirectory() as folder:
        with EventLog.create(Path(folder) / "run") as log:
            live = State(log)
            for number, event in enumerate(events_of(moves)):
                log.append(
                    event, kernels=[a_kernel(event.id)] if isinstance(event, Proposed) else [], time=number
                )
                live.apply(event, number)
            replayed = State.replay(log)
        assert _gist(replayed) == _gist(live)
        with open_run(log.folder) as run:
            assert _table_gist(run) == _gist(replayed)
        assert check(log.folder) == []


@settings(max_examples=60, deadline=None)
@given(MOVES, st.integers(1, 4), st.integers(1, 2))
def test_fold_replay_and_tables_agree_however_small_the_archive(moves, capacity, per_structure):
    def structure(kernel: Kernel) -> str:
        return str(len(kernel.source) + int(kernel.sha, 16) % 3)

    with tempfile.TemporaryDirectory() as folder:
        with EventLog.create(Path(folder) / "run") as log:
            live = State(log, capacity, per_structure, structure)
            for number, event in enumerate(events_of(moves)):
                log.append(
                    event, kernels=[a_kernel(event.id)] if isinstance(event, Proposed) else [], time=number
                )
                live.apply(event, number)
            assert _gist(State.replay(log, capacity, per_structure, structure)) == _gist(live)
        with open_run(log.folder) as run:
            assert (run.best and run.best.id) == (live.best and live.best.id)
            ranked = sorted(
                (one for one in run.individuals() if one.rank is not None),
                key=lambda one: (-one.rank, not one.general, one.id),
            )
            alike = Counter()
            wanted = []
            for one in ranked:
                alike[structure(one.kernel)] += 1
                if alike[structure(one.kernel)] <= per_structure:
                    wanted.append(one.id)
            assert [one.id for one in live.archive] == wanted[:capacity]


def _gist(state: State) -> dict[str, object]:
    return {
        "asks": state.asks,
        "stillborn": state.stillborn,
        "evaluations": state.evaluations,
        "waiting": sorted(state.waiting),
        "archive": [(one.id, one.fitness.values[0]) for one in state.archive],
        "best": state.best and state.best.id,
        "device_s": round(state.device_s, 6),
        "wall_s": state.wall_s,
        "asks by operator": {
            name: (record.asks, record.stillborn) for name, record in state.operators.items()
        },
        "champions": sorted(id for id in range(state.next_id) if state.champion(id)),
    }


def _table_gist(run) -> dict[str, object]:
    members, status = list(run.individuals()), run.status()
    ranked = sorted(
        (one for one in members if one.rank is not None), key=lambda one: (-one.rank, not one.general, one.id)
    )
    asked, lost = Counter(), Counter()
    for operator, individual in run.log.query("SELECT operator, individual FROM asks"):
        asked[operator] += 1
        lost[operator] += individual is None
    return {
        "asks": status["asks"],
        "stillborn": status["stillborn"],
        "evaluations": status["evaluations"],
        "waiting": [one.id for one in members if one.status is None],
        "archive": [(one.id, one.rank) for one in ranked],
        "best": run.best and run.best.id,
        "device_s": round(status["ledger"]["device_s"], 6),
        "wall_s": status["ledger"]["wall_s"],
        "asks by operator": {operator: (asked[operator], lost[operator]) for operator in asked},
        "champions": [one.id for one in members if one.promoted],
    }


def test_twenty_thousand_events_fold_into_little_memory(log):
    half, size, last = 5_000, 250, 10_000
    log.append(STARTED)
    for first in range(1, last + 1, size):
        ids = range(first, first + size)
        judged = (Judged(id, a_measurement(id / last) if id % 2 else a_failure()) for id in ids)
        born = (a_proposal(id, parents=(id - 1,) if id > 1 else ()) for id in ids)
        log.append(
            *(event for pair in zip(born, judged, strict=True) for event in pair), kernels=map(a_kernel, ids)
        )
    state = State(log)
    tracemalloc.start()
    try:
        for record in log.records():
            state.apply(record.event, record.time)
            if record.seq == 2 * half:
                at_half = tracemalloc.get_traced_memory()[0]
        at_end, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert state.evaluations == last
    assert at_end - at_half < half * 300  # bytes a kernel: a digest and a rank
    assert peak < 10e6
