"""Cores that do not halt between timed blocks (see ``native/awake.c``)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from fitness import native


@contextmanager
def awake(cores: int) -> Iterator[None]:
    """Keep this process's first ``cores`` cores from halting, at the lowest priority there is."""
    program, parent = str(native.tool("awake")), str(os.getpid())
    keepers = [
        subprocess.Popen([program, str(core), parent], env={}, stdin=subprocess.DEVNULL)
        for core in sorted(os.sched_getaffinity(0))[:cores]
    ]
    try:
        yield
    finally:
        for keeper in keepers:
            keeper.kill()
        for keeper in keepers:
            keeper.wait()
