"""Diagnose: from counters or static facts to a bottleneck, what shows it, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from operators.agents import prompts
from operators.agents.answers import Unread, one_line
from operators.agents.chat import Answer, Chat, Message
from operators.agents.context import AgentBrief
from operators.agents.data import data
from operators.agents.fitting import Fitted, TooLong, fitted
from operators.agents.models import ModelSettings
from operators.agents.offer import Offer, asked
from populations.learned import Diagnosis

BOTTLENECKS = (
    "memory bandwidth",
    "memory latency",
    "cache",
    "compute",
    "instruction mix",
    "occupancy",
    "parallelism",
    "synchronisation",
    "launch overhead",
    "unknown",
)
MOST = 4  # prescriptions, and lines of evidence
KEEPS = ("profiles",)


class Diagnose:
    """What holds one kernel back; its parent should have a profile."""

    name, arity = "agent_diagnose", 1

    def __call__(self, brief: AgentBrief, chat: Chat) -> Offer[Diagnosis]:
        """The diagnosis of the brief's parent, or why there is none."""
        return asked(chat, brief, _conversation, read, KEEPS)

    def prompt(self, brief: AgentBrief, model: ModelSettings) -> Fitted | TooLong:
        """The question alone, for whoever sends it elsewhere or later; ``read`` reads its answer."""
        return fitted(_conversation, brief, model, keeps=KEEPS)


def _conversation(brief: AgentBrief) -> Sequence[Message]:
    return prompts.conversation("diagnose", brief, bottlenecks=list(BOTTLENECKS))


def read(answer: Answer) -> Diagnosis | Unread:
    """The diagnosis in an answer; one without a prescription is none."""
    found = data(answer)
    if isinstance(found, Unread):
        return found
    prescriptions = lines(found.get("prescriptions"))
    if not prescriptions:
        return Unread("the diagnosis prescribes nothing")
    said = one_line(str(found.get("bottleneck", ""))).lower().replace("_", " ").replace("-", " ")
    known = next((each for each in BOTTLENECKS if each in said), "unknown")
    return Diagnosis(known, lines(found.get("evidence")), prescriptions)


def lines(value: object) -> tuple[str, ...]:
    """A list of texts, or of objects with texts, or one text, as a few lines."""
    items: Sequence[object] = value if isinstance(value, list) else [value]
    texts = [
        "; ".join(map(str, each.values())) if isinstance(each, dict) else each for each in items[: 4 * MOST]
    ]
    found = [one_line(text) for text in texts if isinstance(text, str)]
    return tuple(line for line in found if line)[:MOST]
