"""The ledger keeps a run within its caps, whatever the calls under way come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import populations
from evo.ledger import Amount, Caps, Ledger, refuse_unpriced
from evo.settings import SettingsError
from populations import EventLog, State
from populations.events import Certainty, Event, Judged, Proposed, Reserved, Settled, Started, Stillborn
from populations.verdict import Outcome, Stage, Verdict


def after(*events: Event, caps: Caps | None = None) -> Ledger:
    ledger = Ledger(caps)
    for event in events:
        ledger.apply(event)
    return ledger


def call(ask: int, tokens: int = 1000, usd: float = 0.1, again: str | None = None) -> Reserved:
    return Reserved(f"{ask}.1", ask, "mutate", "small", tokens, usd, again)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Caps, list[tuple[Amount, Amount]], list[int]]:
    """Caps, the calls that somebody wants to make (at most, at last), and how many are settled after each."""
    money = st.integers(0, 500).map(lambda cents: cents / 100)
    caps = Caps(
        usd=draw(st.none() | money.map(lambda m: m + 0.01)), tokens=draw(st.none() | st.integers(1, 9000))
    )
    tokens = st.integers(0, 3000)
    wanted = draw(st.lists(st.tuples(tokens, money, st.integers(0, 120)), max_size=30))
    calls = [
        (Amount(most, usd), Amount(most * share // 100, usd * share / 100)) for most, usd, share in wanted
    ]
    return caps, calls, draw(st.lists(st.integers(0, 3), min_size=len(calls), max_size=len(calls)))


def lived(caps: Caps, calls: list[tuple[Amount, Amount]], settled: list[int]) -> tuple[list[Event], Ledger]:
    """What a run logs that asks for room before each call and settles some of those under way after it."""
    ledger, events = Ledger(caps), []
    comes_to: dict[str, Amount] = {}

    def log(event: Event) -> None:
        events.append(event)
        ledger.apply(event)

    for ask, ((most, cost), count) in enumerate(zip(calls, settled, strict=True), start=1):
        if ledger.refusal(most) is None:
            comes_to[f"{ask}.1"] = cost
            log(call(ask, most.tokens, most.usd))
        for number in list(ledger.open)[:count]:
            log(Settled(number, comes_to[number].tokens, comes_to[number].usd, 1.0))
    return events, ledger


def over(settled: Settled, reserved: Reserved) -> Amount:
    return Amount(max(0, settled.tokens - reserved.tokens), max(0.0, settled.usd - reserved.usd))


@given(histories())
def test_a_cap_is_passed_by_no_more_than_calls_cost_beyond_their_reservations(
    history: tuple[Caps, list[tuple[Amount, Amount]], list[int]],
) -> None:
    events, ledger = lived(*history)
    reserved = {event.call: event for event in events if isinstance(event, Reserved)}
    excess = sum((over(e, reserved[e.call]) for e in events if isinstance(e, Settled)), Amount())
    committed = ledger.spent + ledger.reserved
    if ledger.caps.usd is not None:
        assert committed.usd <= ledger.caps.usd + excess.usd + 1e-9
    if ledger.caps.tokens is not None:
        assert committed.tokens <= ledger.caps.tokens + excess.tokens


@given(histories())
def test_every_call_is_counted_once_and_a_kill_charges_the_open_ones(
    history: tuple[Caps, list[tuple[Amount, Amount]], list[int]],
) -> None:
    events, before = lived(*history)
    resumed = after(*events, caps=before.caps)
    assert (resumed.spent, resumed.open, resumed.lines) == (before.spent, before.open, before.lines)
    committed = before.spent + before.reserved
    for settled in resumed.unknown():
        resumed.apply(settled)
    assert resumed.open == {}
    assert resumed.spent.tokens == committed.tokens
    assert resumed.spent.usd == pytest.approx(committed.usd)
    assert sum(line.calls for line in resumed.lines.values()) == sum(isinstance(e, Reserved) for e in events)
    assert sum(line.unknown for line in resumed.lines.values()) == len(before.open)


def test_a_reservation_holds_room_until_it_is_settled() -> None:
    ledger = after(call(1, usd=0.9), caps=Caps(usd=1.0))
    assert ledger.refusal(Amount(usd=0.2)) == "usd"
    assert ledger.reached() is None
    ledger.apply(Settled("1.1", 100, 0.1))
    assert ledger.refusal(Amount(usd=0.2)) is None


def test_the_cap_that_is_reached_is_named() -> None:
    spent = (call(1, 800, 0.5), Settled("1.1", 800, 0.5))
    judged = Judged(1, Verdict(Outcome.INCORRECT, Stage.SMOKE, "wrong"))
    assert after(*spent, caps=Caps(usd=0.5)).reached() == "usd"
    assert after(*spent, caps=Caps(tokens=800)).reached() == "tokens"
    assert after(judged, caps=Caps(evaluations=1)).reached() == "evaluations"
    assert after(caps=Caps(minutes=1.0)).reached(wall_s=60.0) == "minutes"
    assert after(*spent, judged, caps=Caps(2, 1.0, 1.0, 1000)).reached(wall_s=59.0) is None


def test_a_cap_is_reached_where_the_cheapest_call_has_no_room() -> None:
    ledger = after(call(1), Settled("1.1", 800, 0.9), caps=Caps(usd=1.0))
    assert ledger.reached(call=Amount(usd=0.05)) is None
    assert ledger.reached(call=Amount(usd=0.2)) == "usd"


def test_a_call_is_neither_reserved_nor_settled_twice() -> None:
    ledger = after(call(1), Settled("1.1", 10))
    with pytest.raises(ValueError, match=r"call 1\.1 was settled before"):
        ledger.apply(Settled("1.1", 10))
    with pytest.raises(ValueError, match=r"call 1\.1 was reserved before"):
        ledger.apply(call(1))


def test_a_call_with_an_unknown_outcome_is_made_again_once() -> None:
    ledger = after(call(1), call(2))
    for settled in ledger.unknown():
        ledger.apply(settled)
    assert ledger.may_repeat("1.1")
    ledger.apply(call(3, again="1.1"))
    assert not ledger.may_repeat("1.1")
    assert not ledger.may_repeat("3.1")
    assert ledger.may_repeat("2.1")
    with pytest.raises(ValueError, match=r"call 1\.1 has not ended, was made again, or is a repetition"):
        ledger.apply(call(4, again="1.1"))


def test_spending_is_known_by_model_and_operator() -> None:
    other = replace(call(2), operator="repair")
    ledger = after(
        call(1), Settled("1.1", 10, 0.01, 2.0), other, Settled("2.1", 20, certainty=Certainty.ESTIMATED)
    )
    assert ledger.lines["small", "mutate"].spent == Amount(10, 0.01, 2.0)
    assert ledger.lines["small", "repair"].estimated == 1
    assert ledger.spent == Amount(30, 0.01, 2.0)


def test_a_users_own_operator_tells_its_cost_with_its_proposal_and_a_models_is_not_counted_again() -> None:
    mine = Proposed(1, 1, "a", "a", "cpp", (), "mine", "why", tokens=50, usd=0.5)
    models = Proposed(2, 2, "b", "b", "cpp", (), "mutate", "why", tokens=10, usd=0.01, model="small")
    ledger = after(mine, call(1), Settled("1.1", 10, 0.01), models)
    assert ledger.spent == Amount(60, 0.51)


def test_money_cannot_be_capped_where_a_model_has_no_price() -> None:
    refuse_unpriced(None, {"small": None})
    refuse_unpriced(5.0, {"small": 0.0})
    with pytest.raises(SettingsError, match=r"usd = 5: model 'large' has no price"):
        refuse_unpriced(5.0, {"small": 1.0, "large": None})


def test_a_runs_ledger_counts_calls_and_its_check_names_one_that_is_settled_twice(tmp_path: Path) -> None:
    begun = Started("softmax", "cpu", 0, {}, {})
    wasted = Stillborn(1, "mutate", (), "the answer was cut off", model="small")
    with EventLog.create(tmp_path / "run", begun, call(1), Settled("1.1", 700, 0.07, 3.0), wasted) as log:
        state = State.replay(log)
        assert (state.tokens, state.usd) == (700, 0.07)
    with populations.open(tmp_path / "run") as run:
        assert (run.ledger()["tokens"], run.ledger()["usd"]) == (700, 0.07)
    assert populations.check(tmp_path / "run") == []
    with EventLog.open(tmp_path / "run") as log:
        log.append(Settled("1.1", 700))
    assert populations.check(tmp_path / "run") == ["Call 1.1 was settled twice (event 5)."]
