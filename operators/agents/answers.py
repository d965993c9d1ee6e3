"""Reading a kernel out of whatever a model says: its source, or why there is none. Nothing here raises.

Replies come with prose around the source, with several fences of which one is it, with the wrong tag or none,
wrapped in JSON, after long thoughts, with Windows line ends, cut off by the token limit, as a refusal, empty.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from operators.agents.chat import Answer
from operators.agents.fences import Fence, fences, outside

LONGEST = 2 << 20  # characters of an answer that are looked at
SOURCE_BYTES = 256 << 10
ENTRY = "kernel_function"
LINE = 200  # characters of a rationale
Wanted = tuple[str, str]  # language and entry
_THOUGHTS = ("think", "thinking", "thought", "reasoning")
_KEYS = ("source", "code", "kernel", "program", "solution", "content", "answer", "text")
_DECLINES = re.compile(
    r"\W*(i'm sorry|i am sorry|sorry|i can('|no)t|i cannot|i won't|i am unable|i'm unable|as an ai)", re.I
)
_RATIONALE = re.compile(r"^[\W_]{0,6}(?:rationale|why|idea)[\W_]{0,4}[:：][ \t*_]*(\S.*)$", re.I | re.M)
_STARTS = {
    "cpp": re.compile(r"^(?:#include|//|/\*|constexpr|static|extern)", re.M),
    "triton": re.compile(r'^(?:import |from |@|"""|#)', re.M),
}


@dataclass(frozen=True)
class Unread:
    """Why an answer holds nothing that can be used, in one line."""

    reason: str


@dataclass(frozen=True)
class Written:
    """A source, and the model's one line on why."""

    source: str
    rationale: str


def source(answer: Answer, language: str, known: Iterable[str] = (), entry: str = ENTRY) -> Written | Unread:
    """The kernel in an answer.

    Args:
        answer: what the model said.
        language: "cpp" or "triton".
        known: sources that it was shown; one of them is no child.
        entry: name of what the kernel must define.
    """
    text = _unwrapped(plain(answer.text))
    found = _found(text, answer, (language, entry), frozenset(map(_trimmed, map(plain, known))))
    if isinstance(found, Unread):
        return found
    size = len(found.encode())
    if size > SOURCE_BYTES:
        return Unread(f"the source has {size} bytes; at most {SOURCE_BYTES} (256 KiB) are allowed")
    return Written(found, rationale(text))


def plain(text: str) -> str:
    """The text as UTF-8 can hold it, with Unix line ends, without thoughts, cut at what is looked at."""
    text = text[:LONGEST].encode("utf-8", "replace").decode().removeprefix("\ufeff").replace("\0", "")
    return without_thoughts(text.replace("\r\n", "\n").replace("\r", "\n"))


def without_thoughts(text: str) -> str:
    """The text without ``<think>…</think>`` and the like; what is begun and not ended goes to the end."""
    lower = text.lower() if len(text.lower()) == len(text) else text
    for tag in _THOUGHTS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        kept, at = [], 0
        if (end := lower.find(closing)) >= 0 and not 0 <= lower.find(opening) < end:
            at = end + len(closing)  # the server's template had begun it
        while (start := lower.find(opening, at)) >= 0:
            kept.append(text[at:start])
            end = lower.find(closing, start)
            at = len(text) if end < 0 else end + len(closing)
        kept.append(text[at:])
        text = "".join(kept)
        lower = text.lower() if len(text.lower()) == len(text) else text
    return text


def rationale(text: str) -> str:
    """The model's one line on why: the one marked so, else its first sentence outside of fences; else ""."""
    prose = outside(text)
    marked = _RATIONALE.search(prose)
    line = marked[1] if marked else next((each for each in prose.splitlines() if _is_prose(each)), "")
    return one_line(line)


def one_line(text: str, most: int = LINE) -> str:
    """A text as one printable line, shortened."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(text[: 4 * most].split())).strip(" *_`")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def whole(text: str, language: str, entry: str = ENTRY) -> bool:
    """Whether a text has a kernel's entry and device code, not only a piece of it."""
    if language == "cpp":
        return entry in text and 'extern "C"' in text
    named = any(form in text for form in (f"def {entry}", f"class {entry}", f"{entry} =", "ModelNew"))
    return named and "jit" in text and "import" in text


def complete(text: str, language: str, entry: str = ENTRY) -> bool:
    """Whether a text that may have been cut off is whole nevertheless."""
    if language == "cpp":
        bare = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", text)
        return (
            whole(text, language, entry)
            and bare.count("{") == bare.count("}")
            and bare.rstrip().endswith(("}", ";"))
        )
    return whole(text, language, entry) and _parses(text)


def _found(text: str, answer: Answer, wanted: Wanted, known: frozenset[str]) -> str | Unread:
    if not text.strip():
        return Unread(_nothing(answer))
    blocks = fences(text)
    closed = [block.text for block in blocks if block.closed]
    own = [each for each in closed if whole(each, *wanted)]
    new = [each for each in own if _trimmed(each) not in known]
    if new:
        return new[-1]
    if own:
        return Unread("the source is one that it was shown, unchanged")
    if len(joined := "\n\n".join(closed)) and whole(joined, *wanted) and len(closed) > 1:
        return joined + "\n"
    return _open_end(text, blocks, answer, wanted, known)


def _open_end(
    text: str, blocks: list[Fence], answer: Answer, wanted: Wanted, known: frozenset[str]
) -> str | Unread:
    """From an answer without a closed fence around a kernel."""
    last = blocks[-1] if blocks and not blocks[-1].closed else None
    loose = last.text if last else _loose(text, *wanted) if not blocks else None
    if loose is not None and complete(loose, *wanted):
        same = _trimmed(loose) in known
        return Unread("the source is one that it was shown, unchanged") if same else loose
    if answer.cut or last is not None:
        return Unread("the source is cut off" + (" by the token limit" if answer.cut else ""))
    if not blocks and (answer.refusal or _DECLINES.match(text)):
        return Unread(f"the model declines: {one_line(answer.refusal or text, 120)}")
    language, entry = wanted
    if blocks:
        what = f'extern "C" {entry}' if language == "cpp" else f"{entry} and a jit function"
        return Unread(f"none of the {len(blocks)} fenced texts defines {what}")
    return Unread(f"there is no source in the answer: {one_line(text, 80)}")


def _nothing(answer: Answer) -> str:
    if answer.refusal:
        return f"the model declines: {one_line(answer.refusal, 120)}"
    if answer.cut:
        return "the token limit was reached before any answer"
    return "the answer is empty" if not answer.text.strip() else "the answer has thoughts only"


def _unwrapped(text: str) -> str:
    """What a JSON object holds under a likely name, where the whole answer, or its one fence, is one."""
    candidates = [text, *(block.text for block in fences(text)[:1] if block.tag in ("json", ""))]
    for candidate in candidates:
        if not candidate.lstrip().startswith("{"):
            continue
        try:
            data = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        for key in _KEYS:
            inner = data.get(key) if isinstance(data, dict) else None
            if isinstance(inner, str):
                why = next(
                    (data[k] for k in ("rationale", "why", "idea") if isinstance(data.get(k), str)), ""
                )
                code = plain(inner)
                body = code if fences(code) else f"```\n{code}\n```\n"
                return f"Rationale: {one_line(why)}\n{body}" if why else body
    return text


def _loose(text: str, language: str, entry: str) -> str | None:
    """A source without a fence: from its first line of code, prose behind it left out."""
    pattern = _STARTS.get(language)
    start = pattern.search(text) if pattern else None
    if start is None:
        return None
    paragraphs = text[start.start() :].split("\n\n")
    for end in range(len(paragraphs), max(len(paragraphs) - 12, 0), -1):
        candidate = "\n\n".join(paragraphs[:end]).rstrip() + "\n"
        if complete(candidate, language, entry):
            return candidate
    return None


def _parses(text: str) -> bool:
    if len(text) > SOURCE_BYTES:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_prose(line: str) -> bool:
    return sum(c.isalpha() for c in line) >= 8 and not line.lstrip().startswith("#")


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
