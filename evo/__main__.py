"""``python -m evo`` and the ``kernel-evo`` script."""

from __future__ import annotations

import io
import os
import sys


def _stand_in_for_closed_streams() -> None:
    """Give each standard stream that the caller closed to /dev/null.

    Else the next file opened becomes standard error, and what is said there is written into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    from evo.command import run_command_line

    _stand_in_for_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where the caller has closed it
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no "é" still shows the rest

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
