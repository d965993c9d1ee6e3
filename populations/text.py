"""Reading files that a user named or untrusted code left, only so much of them; writing our own whole."""

from __future__ import annotations

import errno
import os
from io import BufferedReader
from pathlib import Path

MOST = 4 << 20  # characters; far more than any kernel or settings file has


def read_text(path: Path) -> str:
    """The text of a file, or of a pipe such as the shell's ``<(command)``.

    Raises:
        OSError: it cannot be read, or is larger than any such file (``/dev/zero`` never ends).
        UnicodeDecodeError: it is not UTF-8.
    """
    with path.open(encoding="utf-8") as file:
        text = file.read(MOST + 1)
    if len(text) > MOST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return text


def put(path: Path, content: bytes, *, synced: bool = False) -> None:
    """Write a file of our own whole or not at all; ``PATH.new`` is all that a kill leaves of it.

    Args:
        path: whatever is there is replaced.
        content: of the file.
        synced: whether it has to be on the disk, so that a machine that stops loses none of it.
    """
    draft = path.with_name(f"{path.name}.new")
    with draft.open("wb") as file:
        file.write(content)
        if synced:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


def open_left(path: Path) -> BufferedReader:
    """A file that untrusted code left, to read: no link is followed, and nothing waits for a pipe's writer.

    Raises:
        OSError: it is missing, or no such file.
    """
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
