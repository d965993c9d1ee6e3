"""Kept work: binaries by what they were compiled from, and a shelf that forgets what was used longest ago."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fitness.plan import Binary

_BINARY = TypeAdapter(Binary)
DIGEST = 64  # hexadecimal digits before the text of a stored binary


@dataclass(frozen=True)
class Made:
    """A binary and the contents of its files, by extension."""

    binary: Binary
    contents: dict[str, bytes]


class Shelf:
    """Files and folders with one parent, of which the last used ones stay.

    The time of an entry's last change on disk is the time of its last use, so that a later process knows it.

    Args:
        folder: the parent; everything in it whose name has no dot belongs to the shelf.
        entries: that stay at most.
        most_bytes: that stay at most.
        least: so many of the last used entries stay whatever their size: they may be in use.
    """

    def __init__(self, folder: Path, *, entries: int, most_bytes: int, least: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._entries, self._most_bytes, self._least = entries, most_bytes, least
        self._lock = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()  # least recently used first
        for path in sorted(
            (path for path in folder.iterdir() if "." not in path.name),
            key=lambda path: path.stat().st_mtime_ns,
        ):
            self._sizes[path.name] = _size(path)
        self._bytes = sum(self._sizes.values())
        with self._lock:
            self._forget()

    def use(self, name: str) -> Path | None:
        """Where an entry lies; it counts as used now. None where there is none."""
        path = self._folder / name
        with self._lock:
            if name not in self._sizes:
                return None
            self._sizes.move_to_end(name)
        try:
            os.utime(path)
        except OSError:
            self._drop(name)
            return None
        return path

    def put(self, name: str, made: Path) -> Path:
        """Move a finished file or folder of the same file system to its place.

        One that is there already stays: it was made from the same.
        """
        path, size = self._folder / name, _size(made)
        with self._lock:
            if name not in self._sizes:
                if not path.exists():
                    made.replace(path)
                self._sizes[name] = size
                self._bytes += size
            self._sizes.move_to_end(name)
            self._forget()
        return path

    def remove(self, name: str) -> None:
        """Forget an entry that turned out to be damaged."""
        with self._lock:
            _delete(self._folder / name)
        self._drop(name)

    def _drop(self, name: str) -> None:
        with self._lock:
            self._bytes -= self._sizes.pop(name, 0)

    def _forget(self) -> None:
        while len(self._sizes) > self._least and (
            len(self._sizes) > self._entries or self._bytes > self._most_bytes
        ):
            name, size = self._sizes.popitem(last=False)
            self._bytes -= size
            _delete(self._folder / name)


class Store:
    """Binaries on a shelf, one file each: a hash of the rest, and the rest.

    Args:
        folder: of the shelf, and of drafts that become its files.
        entries, most_bytes, least: see Shelf.
    """

    def __init__(self, folder: Path, *, entries: int, most_bytes: int, least: int) -> None:
        self._folder = folder
        self._shelf = Shelf(folder, entries=entries, most_bytes=most_bytes, least=least)
        for draft in folder.glob("*.draft"):  # of a process that was killed
            draft.unlink()

    def get(self, key: str) -> Made | None:
        """What was put under a key; None where there is nothing, or where it is damaged."""
        path = self._shelf.use(key)
        if path is None:
            return None
        made = _read(path)
        if made is None:
            self._shelf.remove(key)
        return made

    def put(self, key: str, made: Made) -> None:
        """Keep a binary: whole, or after a crash not at all."""
        contents = {kind: base64.b64encode(data).decode() for kind, data in made.contents.items()}
        text = json.dumps({"binary": _BINARY.dump_python(made.binary), "contents": contents}).encode()
        draft = self._folder / f"{key}.{threading.get_ident()}.draft"
        draft.write_bytes(hashlib.sha256(text).hexdigest().encode() + text)
        self._shelf.put(key, draft)
        draft.unlink(missing_ok=True)


def _read(path: Path) -> Made | None:
    try:
        data = path.read_bytes()
        digest, text = data[:DIGEST], data[DIGEST:]
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None
        kept = json.loads(text)
        contents = {kind: base64.b64decode(data) for kind, data in kept["contents"].items()}
        return Made(_BINARY.validate_python(kept["binary"]), contents)
    except (OSError, ValidationError):
        return None


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(inner.stat().st_size for inner in path.iterdir())


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
