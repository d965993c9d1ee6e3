"""What an agent hands back: a value or the reason why there is none, and what it cost either way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from operators.agents.answers import Unread
from operators.agents.chat import Answer, Chat, Message
from operators.agents.context import AgentBrief
from operators.agents.errors import ChatError
from operators.agents.fitting import Fitted, TooLong, fitted
from operators.agents.spent import Spent

T = TypeVar("T")


@dataclass(frozen=True)
class Offer(Generic[T]):
    """The end of one use of an agent.

    Attributes:
        value: what it made; None where nothing can be used.
        reason: why there is none, in one line: a still-birth is counted under it.
        spent: tokens, money, time.
        left_out: what was left out of the prompt so that it fits its model.
        model: the model's name.
        failure: the request's failure, where that is why; a ``SetupError`` will not go away by itself.
    """

    value: T | None
    reason: str = ""
    spent: Spent = field(default_factory=Spent)
    left_out: tuple[str, ...] = ()
    model: str = ""
    failure: ChatError | None = None


def asked(
    chat: Chat,
    brief: AgentBrief,
    render: Callable[[AgentBrief], Sequence[Message]],
    read: Callable[[Answer], T | Unread],
    keeps: Collection[str] = (),
) -> Offer[T]:
    """One question and its answer.

    Args:
        chat: who answers.
        brief: all there is to say.
        render: makes the conversation from a brief.
        read: makes the value, or says why there is none.
        keeps: what must not be left out (see ``fitting.CUTS``).
    """
    prompt = fitted(render, brief, chat.settings, keeps=keeps)
    model = chat.settings.name
    if isinstance(prompt, TooLong):
        return Offer(None, prompt.reason, model=model)
    return replace(_answered(chat, prompt, read), left_out=prompt.left_out, model=model)


def _answered(chat: Chat, prompt: Fitted, read: Callable[[Answer], T | Unread]) -> Offer[T]:
    try:
        answer = chat.ask(prompt.messages)
    except ChatError as why:
        return Offer(None, str(why), why.spent, failure=why)
    value = read(answer)
    if isinstance(value, Unread):
        return Offer(None, value.reason, answer.spent)
    return Offer(value, "", answer.spent)
