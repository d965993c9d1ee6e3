"""Fenced texts in Markdown, as models write it: indented, of any length, with any tag, the last one open."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<tag>[\w+#.-]*)[^\n`]*$")


@dataclass(frozen=True)
class Fence:
    """One fenced text.

    Attributes:
        tag: what stands behind the opening marks, in lower case.
        text: what is inside, without the fence's own indentation.
        closed: whether it ends before the text does.
    """

    tag: str
    text: str
    closed: bool


def fences(text: str) -> list[Fence]:
    """All fenced texts, in order."""
    return _split(text)[0]


def outside(text: str) -> str:
    """What stands around them."""
    return _split(text)[1]


def _split(text: str) -> tuple[list[Fence], str]:
    found: list[Fence] = []
    around: list[str] = []
    inside: list[str] = []
    opening: re.Match[str] | None = None
    for line in text.split("\n"):
        mark = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if opening is None:
            if mark is None:
                around.append(line)
            opening, inside = mark, []
        elif mark is not None and not mark["tag"] and mark["marks"].startswith(opening["marks"]):
            found.append(Fence(opening["tag"].lower(), _body(inside), True))
            opening = None
        else:
            inside.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        found.append(Fence(opening["tag"].lower(), _body(inside), False))
    return found, "\n".join(around)


def _body(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"
