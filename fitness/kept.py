"""Files in the user's cache that only save time."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


def keep(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; where it cannot be written, nothing is kept and nobody is told."""
    draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
