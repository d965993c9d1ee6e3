"""A run is a folder, and this file knows its layout::

    run.toml      the settings, frozen when the run was made
    run.db        the event log (SQLite, with run.db-wal and run.db-shm beside it while in use)
    calls/        requests to models and their answers, one file each
    snapshot.db   the event log as it was, for whoever proposes elsewhere; problem.py beside it
    proposals/    what was proposed elsewhere, one file each
    artifacts/    whatever else is worth keeping
    lock          held by the one process that may write

Whatever a user can get wrong about a run raises ``RunError``: one line that says what, where and what to do.
"""

from __future__ import annotations

import datetime
import errno
import fcntl
import os
import re
import time
from pathlib import Path

SETTINGS = "run.toml"
LOG = "run.db"
DRAFT = "run.db.new"  # the log until it is whole; left behind only by a process that died making it
ARTIFACTS = "artifacts"
CALLS = "calls"
SNAPSHOT = "snapshot.db"
PROBLEM = "problem.py"
PROPOSALS = "proposals"
LOCK = "lock"
FILES = (SETTINGS, LOG, f"{LOG}-wal", f"{LOG}-shm", SNAPSHOT, PROBLEM, LOCK)


class RunError(Exception):
    """A run that cannot be made, read or written; the message is one line: what, where, what to do."""


def claim_folder(problem: str, today: datetime.date, root: Path = Path("runs")) -> Path:
    """Make an empty folder with the default name: ``root/DATE-problem``, or ``root/DATE-problem-n`` if taken.

    Two processes that ask at the same moment get different folders.

    Raises:
        RunError: the folder cannot be made.
    """
    name = f"{today.isoformat()}-{re.sub(r'[^A-Za-z0-9._-]+', '-', problem).strip('-.') or 'run'}"
    number = 1
    while True:
        path = root / (name if number == 1 else f"{name}-{number}")
        try:
            root.mkdir(parents=True, exist_ok=True)
            path.mkdir()
            return path
        except FileExistsError:
            if not path.exists():  # it is `root` that exists, and as a file
                raise _unmakeable(
                    path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                ) from None
            number += 1
        except OSError as why:
            raise _unmakeable(path, why) from why


def make_folder(path: Path, settings_toml: str | None = None) -> Path:
    """Make a run's folder, without its log. An empty or half-made run folder is taken over.

    Args:
        path: where; parents are made.
        settings_toml: text of ``run.toml``; None: write none.

    Raises:
        RunError: the folder cannot be made or written, is in other use, or already holds a run.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        ours = {SETTINGS, ARTIFACTS, LOCK, DRAFT, f"{DRAFT}-journal", f"{DRAFT}-wal", f"{DRAFT}-shm"}
        strangers = sorted({entry.name for entry in path.iterdir()} - ours)
        if LOG in strangers:
            raise RunError(
                f"{path} already holds a run: `kernel-evo resume {path}` goes on with it, or name another"
            )
        if strangers:
            raise RunError(f"{path} holds other files ({strangers[0]!r}): name an empty folder or a new one")
        (path / ARTIFACTS).mkdir(exist_ok=True)
        if settings_toml is not None:
            (path / SETTINGS).write_text(settings_toml, encoding="utf-8")
    except OSError as why:
        raise _unmakeable(path, why) from why
    return path


def require_run(path: Path) -> Path:
    """The path, if it is the folder of a run.

    Raises:
        RunError: nothing is there, or something else is.
    """
    try:
        if path.is_dir() and (path / LOG).is_file():
            return path
        if path.is_dir():
            raise RunError(
                f"{path} is not a run: it has no {LOG}; name the folder that `kernel-evo run` printed"
            )
        if path.exists():
            raise RunError(f"{path} is a file, not a run: name the folder that holds {LOG}")
    except OSError as why:
        raise RunError(f"cannot read {path}: {why.strerror}; check its permissions") from why
    raise RunError(f"there is no run at {path}: check the path, or list the folder that holds your runs")


class FolderLock:
    """The right to write to a run: an ``flock`` on RUN/lock, gone at the latest when its process is."""

    def __init__(self, folder: Path, patience: float = 0.5, name: str = LOCK) -> None:
        """Take the lock, or raise.

        Args:
            folder: the run.
            patience: seconds to wait; a reader that asks whether the run is in use holds it for an instant.
            name: of the file, where it is about something else.

        Raises:
            RunError: another process holds it, or the file cannot be opened for writing.
        """
        try:
            self._fd: int | None = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as why:
            raise RunError(
                f"cannot write to run {folder}: {why.strerror}; make the folder writable, or copy it"
            ) from why
        deadline = time.monotonic() + patience
        while not _try_lock(self._fd, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip() or "(unknown)"
                self.release()
                raise RunError(f"run {folder} is in use by process {holder}: wait for it, or stop it first")
            time.sleep(0.02)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # a full disk: the lock holds all the same, only its owner goes unnamed

    def release(self) -> None:
        """Give it back; twice is once."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def writer_of(folder: Path, name: str = LOCK) -> int | None:
    """Process id of whoever is writing to the run just now; None where nobody is, or it cannot be told."""
    try:
        fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if _try_lock(fd, fcntl.LOCK_SH):
            return None
        return int(os.pread(fd, 32, 0).decode().strip() or 0) or None
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


def _try_lock(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unmakeable(path: Path, why: OSError) -> RunError:
    cure = (
        "free some space"
        if why.errno in (errno.ENOSPC, errno.EDQUOT)
        else "name a folder you can write to (--run-dir)"
    )
    return RunError(f"cannot make the run folder {path}: {why.strerror}; {cure}")
