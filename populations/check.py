"""What must be true of every run, and a sentence for each thing that is not.

Each rule reads the stored events and not the tables, so that a fault in one does not hide one in the other;
then the tables are rebuilt from the events and compared.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from populations.database import explained
from populations.events import (
    Diagnosed,
    Event,
    Exported,
    Judged,
    Promoted,
    Proposed,
    Reflected,
    Reserved,
    Resumed,
    Settled,
    Started,
    Stillborn,
    load,
)
from populations.folder import CALLS, LOG, SETTINGS, RunError, require_run
from populations.kernel import source_sha
from populations.log import EventLog, unreadable
from populations.projection import DERIVED, REBUILT, project, unusable_numbers
from populations.verdict import Outcome, Verdict

_SHOWN = 5  # rows of one table that are named one by one


def check(folder: Path | str) -> list[str]:
    """Verify the invariants of a run; one that is being written to is checked as of now.

    Returns:
        One sentence for each broken invariant, with the number of the event or kernel; empty: all is well.

    Raises:
        RunError: there is no run at this path, it is of a newer format, or it cannot be read at all.
    """
    folder = require_run(Path(folder))
    faults = list(_settings_faults(folder))
    try:
        with EventLog.open(folder, readonly=True) as log, explained(folder):
            log.db.executescript(f"PRAGMA temp_store = MEMORY; BEGIN; {REBUILT}")  # BEGIN: one moment in time
            faults += _file_faults(log.db)
            history = _History(log.db)
            for seq, _, kind, body in log.rows():
                history.read(seq, kind, body)
            faults += history.faults
            faults += history.closing_faults()
            faults += _source_faults(log.db, history.sources)
            faults += _call_faults(folder / CALLS, history.records)
            faults += _table_faults(log.db)
    except RunError as why:
        if not _damage(why.__cause__):
            raise
        faults.append(f"{LOG} is damaged: {why.__cause__}.")
    return faults


def _damage(cause: BaseException | None) -> bool:
    """Whether the file is at fault: its pages, a table that is gone, bytes that are no text."""
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    at_fault = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
    return isinstance(cause, sqlite3.DatabaseError) and code in at_fault


class _History:
    """The rules that events keep among themselves."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.faults: list[str] = []
        self.sources: dict[str, int] = {}  # hash → a kernel that needs it
        self._db = db
        self._last_seq = 0
        self._started = 0
        self._asks: dict[int, int] = {}  # ask → the event that ended it
        self._born: dict[int, int] = {}  # id → event
        self._normal: dict[str, int] = {}  # normal_sha → id
        self._judged: dict[int, int] = {}  # id → event
        self._promoted: set[int] = set()
        self._calls: dict[str, bool] = {}  # call → whether it is settled
        self._heard: dict[str, int] = {}  # call whose answer is no kernel → event
        self.records: dict[str, str] = {}  # name of a file of a call → hash of what it holds

    def read(self, seq: int, kind: str, body: str) -> None:
        """Take in the next stored event."""
        if seq != self._last_seq + 1:
            self._fault(f"Event {self._last_seq + 1} is missing: event {seq} follows event {self._last_seq}.")
        self._last_seq = seq
        try:
            event = load(kind, body)
        except (KeyError, ValidationError) as why:
            self._fault(f"Event {seq} ({kind}) cannot be read: {unreadable(kind, why)}.")
            return
        before = len(self.faults)
        self._judge(seq, event)
        try:
            project(self._db, seq, event)
        except (ValueError, sqlite3.IntegrityError) as why:
            if len(self.faults) == before:
                self._fault(f"Event {seq} ({kind}) cannot follow from those before it: {why}.")

    def closing_faults(self) -> Iterator[str]:
        """What can be said only once all events were read."""
        if self._started != 1:
            yield f"The run has {self._started} events that start it; it must have one, the first."
        for ask in _gaps(self._asks):
            yield f"Ask {ask} has no end: it is neither proposed nor stillborn."
        for id in _gaps(self._born):
            yield f"Kernel {id} is missing: kernels up to {max(self._born)} were proposed."

    def _judge(self, seq: int, event: Event) -> None:
        if isinstance(event, Started):
            self._started += 1
        if seq == 1 and not isinstance(event, Started):
            self._fault(f"Event 1 is a {type(event).__name__.lower()} event; a run begins with its start.")
        match event:
            case Proposed():
                self._end_ask(seq, event.ask)
                self._bear(seq, event)
            case Stillborn():
                self._end_ask(seq, event.ask)
            case Judged(id, verdict):
                if id not in self._born:
                    self._fault(f"Kernel {id} was judged (event {seq}) without having been proposed.")
                if id in self._judged:
                    self._fault(f"Kernel {id} was judged twice: events {self._judged[id]} and {seq}.")
                self._judged.setdefault(id, seq)
                self._verdict(seq, id, verdict)
            case Promoted(id, verdict):
                if id not in self._judged:
                    self._fault(f"Kernel {id} was promoted (event {seq}) before it was judged.")
                self._verdict(seq, id, verdict)
                self._promoted.add(id)
            case Exported(id) if id not in self._promoted:
                self._fault(f"Kernel {id} was exported (event {seq}) before it was promoted.")
            case Reserved(call):
                if call in self._calls:
                    self._fault(f"Call {call} was reserved twice (event {seq}).")
                self._calls.setdefault(call, False)
                if event.request is not None:
                    self.records[f"{call}.asked.json"] = event.request
            case Settled(call):
                if self._calls.get(call, True):
                    why = "twice" if call in self._calls else "without having been reserved"
                    self._fault(f"Call {call} was settled {why} (event {seq}).")
                self._calls[call] = True
                if event.answer is not None:
                    self.records[f"{call}.answer.json"] = event.answer
            case Diagnosed(call) | Reflected(call):
                self._hear(seq, call)
            case Resumed(count) if count != len(self._judged):
                self._fault(
                    f"Event {seq} resumes at {count} evaluations, but {len(self._judged)} were judged."
                )

    def _hear(self, seq: int, call: str) -> None:
        if not self._calls.get(call, False):
            self._fault(f"Call {call} was read (event {seq}) before it was settled.")
        if call in self._heard:
            self._fault(f"Call {call} was read twice: events {self._heard[call]} and {seq}.")
        self._heard.setdefault(call, seq)

    def _end_ask(self, seq: int, ask: int) -> None:
        if ask in self._asks:
            self._fault(f"Ask {ask} ended twice: events {self._asks[ask]} and {seq}.")
        self._asks.setdefault(ask, seq)

    def _bear(self, seq: int, event: Proposed) -> None:
        if event.id in self._born:
            self._fault(f"Kernel {event.id} was proposed twice: events {self._born[event.id]} and {seq}.")
        for parent in event.parents:
            if parent not in self._born or parent >= event.id:
                self._fault(
                    f"Kernel {event.id} names kernel {parent} as a parent, which is not older than it."
                )
        twin = self._normal.setdefault(event.normal_sha, event.id)
        if twin != event.id:
            self._fault(
                f"Kernel {event.id} is a duplicate of kernel {twin}: their normalised sources are equal."
            )
        self._born.setdefault(event.id, seq)
        self.sources.setdefault(event.source_sha, event.id)

    def _verdict(self, seq: int, id: int, verdict: Verdict) -> None:
        for name in unusable_numbers(verdict):
            self._fault(f"Kernel {id} has a {name} that is not a finite number (event {seq}).")
        if (verdict.status is Outcome.MEASURED) != (verdict.rank is not None):
            has = "no rank" if verdict.rank is None else "a rank"
            self._fault(
                f"Kernel {id} is {verdict.status} and has {has} (event {seq}): only measured ones have one."
            )

    def _fault(self, sentence: str) -> None:
        self.faults.append(sentence)


def _gaps(numbers: dict[int, int]) -> list[int]:
    return sorted(set(range(1, max(numbers, default=0) + 1)) - numbers.keys())


def _settings_faults(folder: Path) -> Iterator[str]:
    path = folder / SETTINGS
    try:
        if path.exists():
            tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        yield f"{SETTINGS} is not valid TOML: {why}."
    except OSError as why:
        yield f"{SETTINGS} cannot be read: {why.strerror}."


def _file_faults(db: sqlite3.Connection) -> Iterator[str]:
    for (finding,) in db.execute("PRAGMA main.integrity_check(20)"):
        if finding != "ok":
            yield f"{LOG} is damaged: {finding}."


def _source_faults(db: sqlite3.Connection, needed: dict[str, int]) -> Iterator[str]:
    missing = dict(needed)
    for sha, text in db.execute("SELECT sha, text FROM main.sources"):
        owner = missing.pop(sha, None)
        if source_sha(text) != sha:
            whose = f"of kernel {owner}" if owner else "that no kernel names"
            yield f"The source {whose} was changed: its text does not have the hash {sha[:12]}."
    for sha, id in missing.items():
        yield f"The source of kernel {id} is missing: {sha[:12]}."


def _call_faults(calls: Path, records: dict[str, str]) -> Iterator[str]:
    """Requests to models and answers that are not what the events say."""
    for name, sha in records.items():
        try:
            changed = hashlib.sha256((calls / name).read_bytes()).hexdigest() != sha
        except OSError as why:
            yield f"{calls.name}/{name} cannot be read: {why.strerror}."
            continue
        if changed:
            yield f"{calls.name}/{name} was changed: it does not have the hash {sha[:12]}."


def _table_faults(db: sqlite3.Connection) -> Iterator[str]:
    """Rows that differ between the tables stored and the tables rebuilt from events."""
    for table, key in DERIVED.items():
        differing = set()
        for one, other in (("main", "temp"), ("temp", "main")):
            rows = db.execute(
                f"SELECT {key} FROM (SELECT * FROM {one}.{table} EXCEPT SELECT * FROM {other}.{table})"
            )
            differing |= {row[0] for row in rows}
        for value in sorted(differing)[:_SHOWN]:
            what = "ask" if table == "asks" else "kernel"
            yield f"Table {table} is not what the events say about {what} {value}."
        if len(differing) > _SHOWN:
            yield f"Table {table} is wrong about {len(differing) - _SHOWN} more."
