"""A ``Chat`` without a model: prepared answers, or a function of the prompt. For tests and demonstrations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from operators.agents import chat
from operators.agents.chat import Answer, Message, Tool
from operators.agents.errors import Broken, ChatError
from operators.agents.models import ModelSettings
from operators.agents.spent import Spent
from operators.agents.tokens import count

Reply = str | Answer | ChatError


class ScriptedChat:
    """Answers from a list, in order, or by a function of the conversation.

    Args:
        replies: texts, answers and errors, or what makes one of a conversation.
        settings: what it says of itself; no price.

    Attributes:
        asked: every conversation it was asked to continue.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Sequence[Message]], Reply],
        settings: ModelSettings | None = None,
    ) -> None:
        self._settings = settings or ModelSettings("scripted", "http://127.0.0.1/v1")
        self._reply = replies if callable(replies) else None
        self._replies = iter(()) if callable(replies) else iter(replies)
        self._lock = threading.Lock()
        self.asked: list[tuple[Message, ...]] = []

    @property
    def settings(self) -> ModelSettings:
        """What it says of itself."""
        return self._settings

    def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
    ) -> Answer:
        """The next reply; a text is charged by its length.

        Raises:
            ChatError: the reply is one, or there is none left.
        """
        del limit
        with self._lock:
            self.asked.append(tuple(messages))
            reply = self._reply(messages) if self._reply else next(self._replies, None)
        if reply is None:
            raise Broken("the script has no answer left")
        if isinstance(reply, ChatError):
            raise reply
        answer = Answer(reply) if isinstance(reply, str) else reply
        if answer.spent.attempts:
            return answer
        tokens = chat.size(messages, tools), count(answer.text)
        return replace(answer, spent=Spent(*tokens, attempts=1, usd=self._settings.cost(*tokens)))
