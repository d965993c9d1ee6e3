"""Small edits to a long source: search and replace, applied exactly or refused.

::

    <<<<<<< SEARCH
    lines as they stand in the source, once
    =======
    lines that replace them
    >>>>>>> REPLACE
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from operators.agents.answers import Unread, plain
from operators.agents.chat import Answer

MOST = 64  # edits of one answer
_OPEN, _MIDDLE, _CLOSE = (
    re.compile(r"\s*<{5,9} ?SEARCH\W*$"),
    re.compile(r"={5,9}\s*$"),
    re.compile(r"\s*>{5,9} ?REPLACE\W*$"),
)


@dataclass(frozen=True)
class Edit:
    """Text that stands in the source once, and what replaces it."""

    search: str
    replace: str


def edits(answer: Answer) -> tuple[Edit, ...] | Unread:
    """All edits of an answer, in order; an answer that breaks off within one has none."""
    found: list[Edit] = []
    search: list[str] = []
    replace: list[str] = []
    part = 0  # 0: outside, 1: searching, 2: replacing
    for line in plain(answer.text).split("\n"):
        if part == 0 and _OPEN.match(line):
            search, replace, part = [], [], 1
        elif part == 1 and _MIDDLE.match(line):
            part = 2
        elif part == 2 and _CLOSE.match(line):
            found.append(Edit("\n".join(search), "\n".join(replace)))
            part = 0
        elif part:
            (search if part == 1 else replace).append(line)
    if part:
        return Unread("an edit is cut off" + (" by the token limit" if answer.cut else ""))
    if len(found) > MOST:
        return Unread(f"{len(found)} edits; at most {MOST} are applied")
    return tuple(found) if found else Unread("there is no edit in the answer")


def applied(source: str, changes: Sequence[Edit]) -> str | Unread:
    """The source with all edits applied, in order; refused where one does not fit exactly once."""
    text = source.replace("\r\n", "\n")
    for n, edit in enumerate(changes, 1):
        if not edit.search.strip():
            return Unread(f"edit {n} searches for nothing")
        found = _places(text, edit.search)
        if len(found) != 1:
            what = "does not stand in the source" if not found else f"stands in the source {len(found)} times"
            return Unread(f"edit {n} {what}: {edit.search.strip().splitlines()[0][:60]!r}")
        text = text[: found[0]] + edit.replace + text[found[0] + len(edit.search) :]
    return text if text != source.replace("\r\n", "\n") else Unread("the edits change nothing")


def _places(text: str, search: str) -> list[int]:
    """Where whole lines of the text are the searched ones; at most three."""
    places: list[int] = []
    at = -1
    while (at := text.find(search, at + 1)) >= 0 and len(places) < 3:
        end = at + len(search)
        if (at == 0 or text[at - 1] == "\n") and (end == len(text) or text[end] == "\n"):
            places.append(at)
    return places
