"""Reading a file that a user named: whatever it really is, only so much of it is read."""

from __future__ import annotations

import errno
import os
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
