"""Guides for authors of each kernel language, with the target's facts filled in.

``operators/guides/LANGUAGE.md`` has two halves, parted by a line ``<!-- advice -->``: the contract, which
every author must know, and advice, which may be left out where a model's context is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from operators.agents.chat import Tool, ToolResult

PARTED = "<!-- advice -->"
FACTS = "<!-- facts -->"


@dataclass(frozen=True)
class Guide:
    """What an author of kernels reads first: the contract with the target's facts, and advice."""

    contract: str
    advice: str

    @property
    def text(self) -> str:
        """Both."""
        return f"{self.contract}\n{self.advice}"


@cache
def languages() -> tuple[str, ...]:
    """Kernel languages that have a guide."""
    names = (file.name for file in (files("operators") / "guides").iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


def guide(language: str, facts: Mapping[str, str]) -> Guide:
    """The guide of a language.

    Args:
        language: "cpp" or "triton".
        facts: of the target, by name, such as {"cores": "2"}; shown as a list.

    Raises:
        ValueError: that language has no guide.
    """
    if language not in languages():
        raise ValueError(f"no guide for {language!r}; there are some for {', '.join(languages())}")
    text = _text(language)
    listed = "\n".join(f"- {name}: {value}" for name, value in facts.items()) or "- nothing is known of it"
    contract, _, advice = text.replace(FACTS, listed).partition(PARTED)
    return Guide(contract.strip() + "\n", advice.strip() + "\n")


def tool(language: str, facts: Mapping[str, str]) -> Tool:
    """The guide as a tool for a conversation: a prompt may have had to do without its advice."""
    text = guide(language, facts).text
    about = "Read the guide for authors of this kernel language: its contract, the target, and advice."
    return Tool("read_guide", about, {"type": "object", "properties": {}}, lambda _: ToolResult(text))


@cache
def _text(language: str) -> str:
    return (files("operators") / "guides" / f"{language}.md").read_text(encoding="utf-8")
