"""Where a process that proposes leaves its proposals, and sees those of others."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evo.parcels import LARGEST, Damaged, Parcel, call_of, encoded, listed, read
from populations.folder import PROPOSALS, FolderLock, RunError
from populations.text import put


class Outbox:
    """Where one process leaves its proposals; a context manager.

    Args:
        run: the run's folder.
        identity: of the run.
        name: of the process, letters and digits; None: one that nobody else has.

    Raises:
        RunError: the folder cannot be written.
    """

    def __init__(self, run: Path, identity: str, name: str | None = None) -> None:
        self.folder, self._identity = run / PROPOSALS, identity
        self.name, self._count = name or secrets.token_hex(6), 0
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as why:
            raise RunError(f"{self.folder} cannot be made: {why.strerror}; make {run} writable") from why
        listed(self.folder)
        self._lock: FolderLock | None = None
        with suppress(OSError):  # a file system without locks: whoever judges meanwhile takes us for gone
            self._lock = FolderLock(self.folder, name=f"{self.name}.lock")
        self._seen: set[str] = set()

    def next_id(self) -> str:
        """A name for the next proposal."""
        self._count += 1
        id = f"{self.name}-{self._count:04d}"
        self._seen.add(id)
        return id

    def announce(self, parcel: Parcel) -> None:
        """A model is about to be asked."""
        self._write(f"{parcel.id}.asked", parcel)

    def withdraw(self, parcel: Parcel) -> None:
        """It is not asked after all."""
        (self.folder / f"{parcel.id}.asked.json").unlink(missing_ok=True)

    def put(self, parcel: Parcel) -> None:
        """It is known what came of it."""
        self._write(parcel.id, parcel)
        self.withdraw(parcel)

    def others(self, known: Collection[str] = ()) -> Iterator[Parcel]:
        """What other processes left or announced since the last look; what cannot be read is passed over.

        Args:
            known: calls that need not be told of.
        """
        ended, open_ = listed(self.folder)
        for id in (*ended, *open_):
            if id in self._seen:
                continue
            self._seen.add(id)
            if call_of(id) in known:
                continue
            for there in (False, True) if id in open_ else (True,):  # it may have ended since
                with suppress(Damaged):
                    yield read(self.folder, id, self._identity, there)
                    break

    def close(self) -> None:
        """No more comes from this process."""
        (self.folder / f"{self.name}.lock").unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, name: str, parcel: Parcel) -> None:
        content = encoded(parcel)
        if len(content) > LARGEST:
            content = encoded(replace(parcel, asked=None, answer=None))
        put(self.folder / f"{name}.json", content, synced=True)
