"""One tiny request to an endpoint: does it answer, does it count, does it take the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from operators.agents.chat import Chat, Message
from operators.agents.client import Client
from operators.agents.errors import ChatError
from operators.agents.models import ModelSettings
from operators.agents.spent import Spent

TOKENS = 16
SECONDS = 60.0


@dataclass(frozen=True)
class Probe:
    """What one request found out.

    Attributes:
        model, url: who was asked.
        works: whether an answer came.
        says: one line for people.
        spent: what it cost.
        failure: what went wrong; None where it works.
    """

    model: str
    url: str
    works: bool
    says: str
    spent: Spent
    failure: ChatError | None = None


def probe(settings: ModelSettings, environment: Mapping[str, str]) -> Probe:
    """Ask a model one thing, once, within a minute.

    Args:
        settings: which one.
        environment: where its key is looked up; pass ``os.environ``.
    """
    once = replace(settings, retries=0, timeout_s=min(settings.timeout_s, SECONDS))
    try:
        client = Client(once, environment)
    except ChatError as why:
        return Probe(settings.name, settings.url, False, str(why), why.spent, why)
    try:
        return probed(client)
    finally:
        client.close()


def probed(chat: Chat) -> Probe:
    """The same of a chat that is there already."""
    settings = chat.settings
    try:
        answer = chat.ask([Message("user", "Reply with the word ready.")], limit=TOKENS)
    except ChatError as why:
        return Probe(settings.name, settings.url, False, str(why), why.spent, why)
    spent = answer.spent
    counts = "does not count tokens; they are estimated" if spent.estimated else f"{spent.tokens} tokens"
    cost = f"{spent.usd:.6f} USD" if settings.priced and spent.usd is not None else "no price set"
    says = f"answers in {spent.seconds:.1f} s; {counts}; {cost}"
    return Probe(settings.name, settings.url, True, says, spent)
