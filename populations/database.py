"""How a run's SQLite file is opened, and what its errors mean to a person."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from populations.events import FORMAT
from populations.folder import DRAFT, LOG, SNAPSHOT, RunError
from populations.projection import SCHEMA

# What SQLite says where it cannot make the index file: no right, a read-only or a full file system.
_NO_INDEX = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)


@contextmanager
def new_database(folder: Path) -> Iterator[sqlite3.Connection]:
    """Makes RUN/run.db: what the body writes into it is there as soon as the file is, or no file is."""
    for leftover in folder.glob(DRAFT + "*"):
        leftover.unlink()
    db = _connect(folder / DRAFT, "rwc", patience=5.0)
    try:
        _set_up_writer(db)
        db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
        yield db
        db.execute("PRAGMA journal_mode = WAL")
    finally:
        db.close()
    (folder / DRAFT).rename(folder / LOG)


def open_writer(folder: Path, patience: float) -> sqlite3.Connection:
    """RUN/run.db, open for writing."""
    db = _connect(folder / LOG, "rw", patience)
    try:
        _require_format(db, folder)
        _set_up_writer(db)
        db.execute("BEGIN IMMEDIATE")  # a file nobody may write to shows it now, not hours into the run
        db.execute("ROLLBACK")
    except BaseException:
        db.close()
        raise
    return db


def open_reader(folder: Path, patience: float) -> tuple[sqlite3.Connection, Path | None]:
    """RUN/run.db, open for reading, and the temporary folder it was copied to, if it was.

    SQLite reads a log in write-ahead mode only where it finds or can make an index file beside it. In a
    folder that cannot be written, and that nobody writes to, it can do neither, so there a copy is read: a
    whole one, whereas opening the file as "immutable" would miss what a killed writer left in run.db-wal.
    """
    db = _connect(folder / LOG, "ro", patience)
    try:
        _require_format(db, folder)
        return db, None
    except sqlite3.OperationalError as why:
        db.close()
        if why.sqlite_errorcode & 0xFF not in _NO_INDEX:
            raise
    except BaseException:
        db.close()
        raise
    copy = Path(tempfile.mkdtemp(prefix="kernel-evo-"))
    try:
        for name in (LOG, LOG + "-wal"):
            if (folder / name).exists():
                shutil.copyfile(folder / name, copy / name)
        db = _connect(copy / LOG, "rw", patience)
        _require_format(db, folder)
        return db, copy
    except BaseException:
        db.close()
        shutil.rmtree(copy, ignore_errors=True)
        raise


def write_snapshot(db: sqlite3.Connection, folder: Path) -> None:
    """RUN/snapshot.db: what the log holds now, whole and in one plain file, put in place at once."""
    draft = folder / f"{SNAPSHOT}.new"
    draft.unlink(missing_ok=True)
    db.execute("VACUUM INTO ?", (str(draft),))  # a copy is in no write-ahead mode
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(folder / SNAPSHOT)


def open_snapshot(folder: Path) -> tuple[sqlite3.Connection, Path]:
    """A copy of RUN/snapshot.db, open for reading, and the temporary folder that holds it.

    The next snapshot may take the file's place meanwhile, which not every network file system forgives an
    open one.

    Raises:
        RunError: there is none, or it cannot be read.
    """
    path, copy = folder / SNAPSHOT, Path(tempfile.mkdtemp(prefix="kernel-evo-"))
    judge = f"`kernel-evo judge {folder}`, where the run's device is, writes one"
    try:
        shutil.copyfile(path, copy / LOG)
        db = _connect(copy / LOG, "ro", patience=0.0)
        try:
            _require_format(db, folder)
        except BaseException:
            db.close()
            raise
        return db, copy
    except BaseException as why:
        shutil.rmtree(copy, ignore_errors=True)
        if isinstance(why, FileNotFoundError):
            raise RunError(f"{folder} has no snapshot to propose from: {judge}") from None
        if isinstance(why, OSError):
            raise RunError(f"{path} cannot be read: {why.strerror}; check the path") from why
        if isinstance(why, sqlite3.DatabaseError):
            raise RunError(f"{path} is damaged ({why}): {judge} anew") from why
        raise


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of the body's statements are stored, or none; also when Ctrl-C comes between any two of them."""
    if db.in_transaction:  # Ctrl-C came before the last one could be undone
        db.execute("ROLLBACK")
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turns SQLite's and the system's errors into one line for a person.

    Raises:
        RunError: the disk, its permissions or the file are at fault.
        ValueError: the caller is: an event that cannot follow from those before it.
    """
    try:
        yield
    except sqlite3.IntegrityError as why:
        raise ValueError(f"run {folder} cannot contain this event: {why}") from why
    except sqlite3.DatabaseError as why:
        raise RunError(f"{folder / LOG}: {why}; {_cure(why, folder)}") from why
    except OSError as why:
        raise RunError(
            f"{why.filename or folder}: {why.strerror}; free some space or check the permissions"
        ) from why


def _cure(why: sqlite3.DatabaseError, folder: Path) -> str:
    # 0xFF: SQLite puts details into the higher bits. Errors that Python raises itself carry no code.
    code = getattr(why, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    resume = f"then go on with `kernel-evo resume {folder}`: nothing stored so far is lost"
    if code == sqlite3.SQLITE_FULL:
        return f"free some space, {resume}"
    if code == sqlite3.SQLITE_IOERR:
        return f"the disk may be full, over quota or failing: mend that, {resume}"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"make {folder} and its files readable and writable, or copy the run to a folder that is"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another program has locked it: close that program, {resume}"
    if code == sqlite3.SQLITE_NOTADB:
        return "this file is not a run's log: name another run"
    return f"the file may be damaged: `kernel-evo check {folder}` says where"


def _connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    # Autocommit: transactions are begun by hand. Any thread may close, which garbage collection may do.
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, timeout=patience, isolation_level=None, check_same_thread=False, uri=True)


def _set_up_writer(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA foreign_keys = ON")


def _require_format(db: sqlite3.Connection, folder: Path) -> None:
    (found,) = db.execute("PRAGMA user_version").fetchone()
    db.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # touches the file's contents
    if found > FORMAT:
        raise RunError(
            f"run {folder} has format {found}, this version reads up to {FORMAT}: install a newer kernel-evo"
        )
    if found < 1:
        raise RunError(
            f"run {folder} was never made to the end (its log is empty): delete the folder and start anew"
        )
