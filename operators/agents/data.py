"""JSON out of a reply: from a fence, or from between the prose. Nothing here raises."""

from __future__ import annotations

import json
import re
from typing import Any

from operators.agents.answers import Unread, one_line, plain
from operators.agents.chat import Answer
from operators.agents.fences import fences

TRIES = 64  # places where an object may begin
LONGEST = 256 << 10  # characters
_TRAILING = re.compile(r",(\s*[}\]])")


def data(answer: Answer) -> dict[str, Any] | Unread:
    """The JSON object in an answer; a list counts as ``{"items": […]}``."""
    text = plain(answer.text)[:LONGEST]
    if not text.strip():
        return Unread(
            "the answer is empty" if not answer.refusal else f"declined: {one_line(answer.refusal)}"
        )
    blocks = fences(text)
    candidates = [block.text for block in blocks if block.closed and block.tag in ("json", "json5", "jsonc")]
    candidates += [block.text for block in blocks if block.closed] + [text]
    for candidate in candidates:
        found = _loaded(candidate.strip())
        if found is None:
            found = _within(candidate)
        if found is not None:
            return found
    cut = " (cut off by the token limit)" if answer.cut else ""
    return Unread(f"there is no JSON object in the answer{cut}")


def _within(text: str) -> dict[str, Any] | None:
    """The longest of the objects that begin somewhere in a text."""
    decoder, best, longest = json.JSONDecoder(strict=False), None, 0
    text = _TRAILING.sub(r"\1", text)
    at = -1
    for _ in range(TRIES):
        at = text.find("{", at + 1)
        if at < 0:
            break
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and end - at > longest:
            best, longest = found, end - at
        at = end - 1
    return best


def _loaded(text: str) -> dict[str, Any] | None:
    for version in (text, _TRAILING.sub(r"\1", text)):
        try:
            found = json.loads(version, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, list):
            return {"items": found}
        return found if isinstance(found, dict) else None
    return None
