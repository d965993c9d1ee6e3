"""``python -m evo`` and the ``kernel-evo`` script."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    from evo.command import run_command_line

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where the caller has closed it
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no "é" still shows the rest

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
