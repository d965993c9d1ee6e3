"""Reading files that a user named or untrusted code left: whatever they really are, only so much is read."""

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


def open_left(path: Path) -> BufferedReader:
    """A file that untrusted code left, to read: no link is followed, and nothing waits for a pipe's writer.

    Raises:
        OSError: it is missing, or no such file.
    """
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
