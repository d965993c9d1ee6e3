"""The tables that are derived from events, so that people and tools can ask SQL questions of a run.

They are written in the same transaction as the event they follow from; ``check`` rebuilds and compares them.
Their constraints are the log's first line of defence: an ask that ends twice, a second first verdict, or a
kernel without a source is refused before it is stored.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator

from populations.events import Event, Judged, Promoted, Proposed, Stillborn
from populations.verdict import CaseVerdict, Timing, Verdict

_LOG = """
CREATE TABLE events (seq INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TRIGGER events_never_change BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events never change'); END;
CREATE TRIGGER events_never_go BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events never go'); END;
CREATE TABLE sources (sha TEXT PRIMARY KEY, language TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
"""
_DERIVED = """
CREATE TABLE asks (ask INTEGER PRIMARY KEY, operator TEXT NOT NULL, individual INTEGER, reason TEXT);
CREATE TABLE individuals (
    id INTEGER PRIMARY KEY, ask INTEGER NOT NULL, source_sha TEXT NOT NULL REFERENCES sources (sha),
    normal_sha TEXT NOT NULL, language TEXT NOT NULL, parents TEXT NOT NULL, operator TEXT NOT NULL,
    rationale TEXT NOT NULL, tokens INTEGER NOT NULL, usd REAL NOT NULL, seconds REAL NOT NULL,
    status TEXT, stage TEXT, reason TEXT, general INTEGER, not_general TEXT, numerics TEXT, isolation TEXT,
    speedup REAL, fitness REAL, rank REAL, verifier TEXT, device_s REAL NOT NULL DEFAULT 0,
    promoted INTEGER NOT NULL DEFAULT 0, proposed_seq INTEGER NOT NULL, judged_seq INTEGER,
    verdict_seq INTEGER);
CREATE TABLE cases (
    individual INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL,
    held_out INTEGER NOT NULL, derived INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, max_error REAL,
    policy TEXT, median REAL, ci95_low REAL, ci95_high REAL, baseline TEXT, baseline_median REAL,
    speedup REAL, speedup_ci95_low REAL, speedup_ci95_high REAL, fitness REAL, noise_floor REAL, rank REAL,
    gbps REAL, tflops REAL, PRIMARY KEY (individual, position)) WITHOUT ROWID;
"""
SCHEMA = _LOG + _DERIVED + "CREATE INDEX individuals_by_rank ON individuals (rank);"
REBUILT = _DERIVED.replace("CREATE TABLE", "CREATE TEMP TABLE")  # to rebuild beside the stored ones
DERIVED = {
    "asks": "ask",
    "individuals": "id",
    "cases": "individual",
}  # table → what identifies a row to a person

_PROPOSED = """INSERT INTO individuals (id, ask, source_sha, normal_sha, language, parents, operator,
    rationale, tokens, usd, seconds, proposed_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_VERDICT = """UPDATE individuals SET status = ?, stage = ?, reason = ?, general = ?, not_general = ?,
    numerics = ?, isolation = ?, speedup = ?, fitness = ?, rank = ?, verifier = ?, device_s = device_s + ?,
    verdict_seq = ?"""
_CASE = f"INSERT INTO cases VALUES ({', '.join('?' * 22)})"


def project(db: sqlite3.Connection, seq: int, event: Event) -> None:
    """Bring the derived tables up to date with one event.

    Raises:
        ValueError: an event that cannot follow from the ones before it.
        sqlite3.IntegrityError: the same, where a constraint of the tables says so.
    """
    match event:
        case Proposed():
            db.execute("INSERT INTO asks VALUES (?, ?, ?, NULL)", (event.ask, event.operator, event.id))
            row = (
                event.id,
                event.ask,
                event.source_sha,
                event.normal_sha,
                event.language,
                json.dumps(event.parents),
            )
            cost = (event.operator, event.rationale, event.tokens, event.usd, event.seconds, seq)
            db.execute(_PROPOSED, (*row, *cost))
        case Stillborn():
            db.execute("INSERT INTO asks VALUES (?, ?, NULL, ?)", (event.ask, event.operator, event.reason))
        case Judged(id, verdict):
            waiting = ", judged_seq = ? WHERE id = ? AND judged_seq IS NULL"
            if db.execute(_VERDICT + waiting, (*_verdict_row(verdict), seq, seq, id)).rowcount != 1:
                raise ValueError(f"kernel {id} was judged before, or never proposed")
            db.executemany(_CASE, _case_rows(id, verdict))
        case Promoted(id, verdict):
            judged = ", promoted = 1 WHERE id = ? AND judged_seq IS NOT NULL"
            if db.execute(_VERDICT + judged, (*_verdict_row(verdict), seq, id)).rowcount != 1:
                raise ValueError(f"kernel {id} was promoted before it was judged")
            db.execute("DELETE FROM cases WHERE individual = ?", (id,))
            db.executemany(_CASE, _case_rows(id, verdict))
        case _:
            pass  # the other kinds have no table; readers fold them


def unusable_numbers(verdict: Verdict) -> list[str]:
    """Names of a verdict's numbers that selection would compare and that are not finite."""
    numbers = {"speedup": verdict.speedup, "fitness": verdict.fitness, "rank": verdict.rank}
    for case in verdict.cases:
        for timing in case.timings:
            where = f"of case {case.name}, {timing.policy}"
            numbers |= {f"fitness {where}": timing.fitness, f"rank {where}": timing.rank}
            numbers |= {f"speedup {where}": timing.speedup}
    return [name for name, value in numbers.items() if value is not None and not math.isfinite(value)]


def _verdict_row(v: Verdict) -> tuple[object, ...]:
    told = (v.status, v.stage, v.reason, v.general, v.not_general, v.numerics, v.isolation)
    return (*told, v.speedup, v.fitness, v.rank, v.verifier, v.device_s)


def _case_rows(id: int, verdict: Verdict) -> Iterator[tuple[object, ...]]:
    """One row for each timing policy of a case, or one without times where the case was not timed."""
    position = 0
    for case in verdict.cases:
        for timing in case.timings or (None,):
            yield (id, position, *_case_columns(case), *_timing_columns(timing))
            position += 1


def _case_columns(c: CaseVerdict) -> tuple[object, ...]:
    return (c.name, c.held_out, c.derived, c.status, c.reason, c.max_error)


def _timing_columns(t: Timing | None) -> tuple[object, ...]:
    if t is None:
        return (None,) * 14
    speed = (t.policy, t.median, *t.ci95, t.baseline, t.baseline_median, t.speedup, *t.speedup_ci95)
    return (*speed, t.fitness, t.noise_floor, t.rank, t.gbps, t.tflops)
