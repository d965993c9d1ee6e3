"""How the command line speaks: JSON to standard output, people's text to standard error, an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from evo.proposing import Told

Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")
]

BUSY = 0.1  # A/A noise, of log speed-up, that a quiet machine stays far below


def data(document: object, as_json: bool, rows: Iterable[Sequence[str]] = ()) -> None:
    """The document as JSON on standard output, or the rows for people on standard error.

    Args:
        document: plain data.
        as_json: which of the two.
        rows: cells, all rows of the same length.
    """
    if as_json:
        print(json.dumps(document, indent=2))
        return
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip(), file=sys.stderr)


def judged(kernels: int) -> str:
    """So many kernels judged, in words."""
    return f"{kernels} kernel{'' if kernels == 1 else 's'} judged"


def calls(row: Mapping[str, Any]) -> str:
    """A row of ``populations.Run.calls`` in words."""
    doubts = [f"{row[name]} {name}" for name in ("failed", "estimated", "unknown", "open") if row[name]]
    doubt = f" ({', '.join(doubts)})" if doubts else ""
    cost = f", {row['usd']:.4g} USD" if row["usd"] else ""
    count = f"{row['calls']} call{'' if row['calls'] == 1 else 's'}"
    spent = f"{row['tokens']} tokens{cost}, {row['seconds']:.0f} s"
    return f"{row['model']}, {row['operator']}: {count}{doubt}, {spent}"


def aside(line: str) -> None:
    """A line for people, beside what a command is about."""
    with suppress(OSError):  # nobody reads any more, or the disk is full: no reason to end anything
        print(line, file=sys.stderr, flush=True)


def proposed(run: Path, told: Told) -> list[str]:
    """What came of proposing, in words."""
    without = f" ({told.without} without a kernel)" if told.without else ""
    cost = f", {told.spent.usd:.4g} USD" if told.spent.usd else ""
    spent = f"; {told.spent.tokens} tokens{cost}" if told.spent.tokens else ""
    lines = [f"{len(told.ids)} proposals in {run}/proposals{without}{spent}"]
    if told.stopped is not None:
        lines.append(f"no more: {told.stopped}")
    return [*lines, f"next: kernel-evo judge {run}"] if told.ids else lines


def noise_floor(noise: float) -> str:
    """The A/A noise in words, and a warning where it hides what a search looks for.

    Args:
        noise: half-width of the A/A interval, of log speed-up.
    """
    warning = "; this machine is busy with something else: small gains will not show" if noise > BUSY else ""
    return f"noise floor {100 * noise:.1f} %{warning}"


def end(yes: bool) -> NoReturn:
    """End the command: exit code 0 for yes, 1 for no."""
    raise typer.Exit(0 if yes else 1)
