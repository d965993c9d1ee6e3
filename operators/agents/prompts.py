"""Prompts are template files: ``templates/NAME.j2`` for what is asked, ``templates/system.j2`` for the rest.

Nothing of a prompt is written in code. A source stands in a fence that nothing in it can close.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from operators.agents.chat import Message
from operators.agents.context import AgentBrief
from operators.agents.guides import guide

TAGS = {"cpp": "cpp", "triton": "python"}


def conversation(template: str, brief: AgentBrief, **further: Any) -> tuple[Message, ...]:
    """The system's and the user's message.

    Args:
        template: name of the file that asks, without ``.j2``.
        brief: what it may say.
        further: what else the template names.
    """
    values = {"brief": brief, "guide": guide(brief.language, dict(brief.facts)), **further}
    return Message("system", rendered("system", **values)), Message("user", rendered(template, **values))


def rendered(template: str, **values: Any) -> str:
    """One template as text, with at most one empty line in a row outside of fences."""
    return _airy(_environment().get_template(f"{template}.j2").render(**values))


def fenced(text: str, tag: str = "") -> str:
    """The text in a fence longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{tag}\n{text.strip(chr(10))}\n{marks}"


def microseconds(seconds: float) -> str:
    """A time as people read it: three digits, in µs."""
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e6:.0f} µs"


def _airy(text: str) -> str:
    """One empty line around each fence, and never two outside of them."""
    lines: list[str] = []
    fence = ""
    for line in text.strip().split("\n"):
        marks = re.match(r"`{3,}", line)
        opens = not fence and marks is not None
        if fence or line.strip() or (lines and lines[-1]):
            if opens and lines and lines[-1]:
                lines.append("")
            lines.append(line if fence else line.rstrip())
        if opens and marks is not None:
            fence = marks[0]
        elif fence and line == fence:
            fence = ""
    return "\n".join(lines) + "\n"


@cache
def _environment() -> jinja2.Environment:
    folder = files("operators.agents") / "templates"

    def load(name: str) -> str | None:
        file = folder / name
        return file.read_text(encoding="utf-8") if file.is_file() else None

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"fenced": fenced, "us": microseconds}
    environment.globals |= {"TAGS": TAGS}
    return environment
