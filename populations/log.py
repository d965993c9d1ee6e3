"""The event log of a run: one SQLite file, append-only, safe against kill -9 at any instant.

``append`` is one transaction: events, the sources they speak of and the tables derived from them are all
stored, or none is. With write-ahead logging and ``synchronous=NORMAL`` a commit survives the death of the
process without waiting for the disk; only a power cut can take the last moments back, and it leaves a valid
log. One process writes (``folder.FolderLock``); any number may read meanwhile.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from populations.database import (
    explained,
    new_database,
    open_reader,
    open_snapshot,
    open_writer,
    transaction,
    write_snapshot,
)
from populations.events import Event, Judged, Promoted, Proposed, Started, dump, kind_of, load
from populations.folder import FolderLock, RunError, make_folder, require_run
from populations.kernel import Kernel
from populations.projection import project, unusable_numbers
from populations.verdict import Verdict

_PAGE = 256  # events read at a time, so that a reader never holds the writer's log back for long


@dataclass(frozen=True)
class Record:
    """An event as stored: its number (from 1, without gaps) and when it happened (seconds since 1970)."""

    seq: int
    time: float
    event: Event


class Store(Protocol):
    """What the engine needs of a run's memory; ``testing.StoreContract`` says what it promises."""

    def append(self, *events: Event, kernels: Sequence[Kernel] = (), time: float | None = None) -> int:
        """Store all of it or nothing; the last event's number."""

    def records(self, since: int = 0) -> Iterator[Record]:
        """Events after number ``since``, in order."""

    def event(self, seq: int) -> Event:
        """The event of this number."""

    def kernel(self, sha: str) -> Kernel:
        """The kernel whose source has this hash."""

    def proposed(self, id: int) -> Proposed:
        """Where a kernel came from."""

    def close(self) -> None:
        """Let go of it; twice is once."""


class EventLog:
    """A ``Store`` in RUN/run.db. Use one from one thread at a time; it is a context manager."""

    def __init__(
        self,
        folder: Path,
        db: sqlite3.Connection,
        lock: FolderLock | None = None,
        copy: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Use ``create`` or ``open`` instead."""
        self.folder = folder
        self.db = db
        self.readonly = lock is None
        self._clock = clock
        self._let_go = weakref.finalize(self, _let_go, db, lock, copy)  # also when the last name goes

    @classmethod
    def create(cls, folder: Path | str, *events: Event, clock: Callable[[], float] = time.time) -> EventLog:
        """A new log, open for writing. Makes the folder where there is none.

        Args:
            folder: the run.
            events: the first ones, normally ``Started``: the log comes into being with them or not at all.
            clock: seconds since 1970, for events that come without a time.

        Raises:
            RunError: the folder cannot be made, is in other use, or already holds a run.
        """
        folder = make_folder(Path(folder))
        with ExitStack() as undo:
            lock = FolderLock(folder)
            undo.callback(lock.release)
            make_folder(folder)  # once more: another process may have made the run before we had the lock
            with explained(folder):
                with new_database(folder) as draft:
                    if events:
                        _write(draft, clock(), events, ())
                db = open_writer(folder, patience=5.0)
            undo.pop_all()
        return cls(folder, db, lock, clock=clock)

    @classmethod
    def open(
        cls,
        folder: Path | str,
        readonly: bool = False,
        clock: Callable[[], float] = time.time,
        patience: float = 5.0,
    ) -> EventLog:
        """The log of an existing run.

        Args:
            folder: the run.
            readonly: read beside a writer, also where the folder itself cannot be written.
            clock: seconds since 1970, for events that come without a time.
            patience: seconds to wait for a database that another program has locked.

        Raises:
            RunError: no run, a newer format, a damaged file, or another process is writing.
        """
        folder = require_run(Path(folder))
        if readonly:
            with explained(folder):
                db, copy = open_reader(folder, patience)
            return cls(folder, db, copy=copy, clock=clock)
        with ExitStack() as undo:
            lock = FolderLock(folder)
            undo.callback(lock.release)
            with explained(folder):
                db = open_writer(folder, patience)
            undo.pop_all()
        return cls(folder, db, lock, clock=clock)

    @classmethod
    def of_snapshot(cls, folder: Path | str) -> EventLog:
        """The log as it was when the run's latest snapshot was written; the run itself is not touched.

        Raises:
            RunError: there is none, or it cannot be read.
        """
        db, copy = open_snapshot(Path(folder))
        return cls(Path(folder), db, copy=copy)

    def write_snapshot(self) -> None:
        """Let ``of_snapshot`` see all events so far.

        Raises:
            RunError: it cannot be written.
        """
        with explained(self.folder):
            write_snapshot(self.db, self.folder)

    def identity(self) -> str:
        """What tells this run, and copies of it, from all others: a hash of its first event and its time."""
        ((when, body),) = self.query("SELECT time, body FROM events WHERE seq = 1")
        return hashlib.sha256(f"{when!r} {body}".encode()).hexdigest()

    def append(self, *events: Event, kernels: Sequence[Kernel] = (), time: float | None = None) -> int:
        """Store events, and the kernels they speak of, in one transaction.

        Args:
            events: in the order in which they happened.
            kernels: sources that ``Proposed`` events among them name; one known already costs nothing.
            time: seconds since 1970; None: now.

        Returns:
            The last event's number.

        Raises:
            RunError: a full, read-only, locked or damaged disk; nothing of this call was stored.
            ValueError: an event that cannot follow from the ones before it; nothing was stored.
        """
        when = self._clock() if time is None else time
        if self.readonly:
            raise RunError(f"run {self.folder} was opened for reading: open it for writing to add to it")
        with explained(self.folder):
            return _write(self.db, when, events, kernels)

    def records(self, since: int = 0) -> Iterator[Record]:
        """Events after number ``since``, in order; events appended meanwhile are included.

        Raises:
            RunError: an event that cannot be read, by its number.
        """
        for seq, when, kind, body in self.rows(since):
            try:
                event = load(kind, body)
            except (KeyError, ValidationError) as why:
                raise RunError(
                    f"event {seq} of run {self.folder} cannot be read: {unreadable(kind, why)}"
                ) from why
            yield Record(seq, when, event)

    def rows(self, since: int = 0) -> Iterator[tuple[int, float, str, str]]:
        """Events as stored: number, time, kind, body."""
        query = "SELECT seq, time, kind, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        while page := self.query(query, since, _PAGE):
            yield from page
            since = page[-1][0]

    def started(self) -> Started:
        """The event that made the run.

        Raises:
            RunError: the folder was made, but no run was started in it.
        """
        first = next((record.event for record in self.records()), None)
        if not isinstance(first, Started):
            raise RunError(
                f"run {self.folder} was never started (its log is empty): delete the folder and start anew"
            )
        return first

    def event(self, seq: int) -> Event:
        """The event of this number.

        Raises:
            RunError: there is none, or it cannot be read.
        """
        for record in self.records(seq - 1):
            if record.seq == seq:
                return record.event
            break
        raise RunError(
            f"run {self.folder} has no event {seq}: `kernel-evo check {self.folder}` says what is missing"
        )

    def source(self, sha: str) -> str:
        """The source text of this hash.

        Raises:
            RunError: the run does not hold it.
        """
        return self.kernel(sha).source

    def kernel(self, sha: str) -> Kernel:
        """The kernel whose source has this hash.

        Raises:
            RunError: the run does not hold it.
        """
        for text, language in self.query("SELECT text, language FROM sources WHERE sha = ?", sha):
            return Kernel(text, language)
        raise RunError(
            f"run {self.folder} holds no source {sha[:12]}: `kernel-evo check {self.folder}` says more"
        )

    def proposed(self, id: int) -> Proposed:
        """Where a kernel came from.

        Raises:
            RunError: the run has no such kernel.
        """
        for (seq,) in self.query("SELECT proposed_seq FROM individuals WHERE id = ?", id):
            event = self.event(seq)
            if isinstance(event, Proposed):
                return event
        raise RunError(
            f"run {self.folder} has no kernel {id}: `kernel-evo top {self.folder}` lists the best ones"
        )

    def verdict(self, id: int) -> Verdict | None:
        """A kernel's latest verdict; None: not judged yet, or there is no such kernel."""
        for (seq,) in self.query(
            "SELECT verdict_seq FROM individuals WHERE id = ? AND verdict_seq NOTNULL", id
        ):
            event = self.event(seq)
            if isinstance(event, Judged | Promoted):
                return event.verdict
        return None

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a SELECT over the tables of ``projection.SCHEMA``.

        Raises:
            RunError: the database cannot be read.
        """
        with explained(self.folder):
            try:
                return self.db.execute(sql, values).fetchall()
            except OverflowError:
                raise RunError(
                    f"run {self.folder} holds no number of more than 64 bits: give a smaller one"
                ) from None

    def close(self) -> None:
        """Let go of the file and of the lock; twice is once."""
        self._let_go()

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def unreadable(kind: str, why: KeyError | ValidationError) -> str:
    """Why ``events.load`` failed, in a few words."""
    if isinstance(why, KeyError):
        return f"this version knows no kind of event called {kind!r}"
    first = why.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'its body'}: {first['msg']}"


def _write(db: sqlite3.Connection, when: float, events: Sequence[Event], kernels: Sequence[Kernel]) -> int:
    with transaction(db):
        for kernel in kernels:
            row = (kernel.sha, kernel.language, kernel.source)
            db.execute("INSERT OR IGNORE INTO sources VALUES (?, ?, ?)", row)
        (seq,) = db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()
        for event in events:
            seq += 1
            if isinstance(event, Judged | Promoted) and (bad := unusable_numbers(event.verdict)):
                raise ValueError(f"kernel {event.id}: a number that is not finite never becomes a {bad[0]}")
            body = dump(event).decode()
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (seq, when, kind_of(event), body))
            project(db, seq, event)
    return int(seq)


def _let_go(db: sqlite3.Connection, lock: FolderLock | None, copy: Path | None) -> None:
    db.close()
    if lock is not None:
        lock.release()
    if copy is not None:
        shutil.rmtree(copy, ignore_errors=True)
