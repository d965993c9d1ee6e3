"""Every request and every answer, told before it is used; and a ``Chat`` that gives them again.

A record is plain JSON data. ``Asked`` is told before anything is sent: after a crash, an ``Asked`` without
its ``Answered`` or ``Failed`` is a request of which nobody knows whether it was served.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from operators.agents import chat
from operators.agents.chat import Answer, Chat, Message, Tool, ToolCall
from operators.agents.client import reservation
from operators.agents.errors import KINDS, Broken, ChatError
from operators.agents.models import ModelSettings
from operators.agents.spent import Spent


@dataclass(frozen=True)
class Asked:
    """A request about to be sent.

    Attributes:
        call: its name: unique in a run.
        model: the model's name.
        key: hash of model, conversation, tools and limit; ``Replayed`` finds the answer by it.
        messages: the conversation, as ``chat.to_json`` writes it.
        tools: what the model may call.
        limit: tokens the answer may have; None: the model's own limit.
        reserved: what one attempt costs at most.
        attempts: how many there may be.
    """

    call: str
    model: str
    key: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    limit: int | None
    reserved: Spent
    attempts: int


@dataclass(frozen=True)
class Answered:
    """What came back for ``call``."""

    call: str
    key: str
    answer: Answer


@dataclass(frozen=True)
class Failed:
    """Why nothing came back for ``call``: a kind of ``ChatError``, its line, and what it cost."""

    call: str
    key: str
    kind: str
    reason: str
    spent: Spent


Record = Asked | Answered | Failed


def dump(record: Record) -> dict[str, Any]:
    """A record as plain JSON data; ``load`` reads it back."""
    return {"record": type(record).__name__.lower(), **asdict(record)}


def load(data: Mapping[str, Any]) -> Record:
    """The record that ``dump`` wrote.

    Raises:
        KeyError, TypeError: it is none.
    """
    form = {name: value for name, value in data.items() if name != "record"}
    if data["record"] == "asked":
        return Asked(**{**form, "reserved": Spent(**form["reserved"])})
    if data["record"] == "failed":
        return Failed(**{**form, "spent": Spent(**form["spent"])})
    inner = form["answer"]
    calls = tuple(ToolCall(**call) for call in inner["calls"])
    return Answered(
        form["call"], form["key"], Answer(**{**inner, "calls": calls, "spent": Spent(**inner["spent"])})
    )


def request_key(
    model: str, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
) -> str:
    """SHA-256 of a request, as 64 hexadecimal digits."""
    asked = [model, chat.to_json(messages), [tool.to_json() for tool in tools], limit]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def request(
    call: str,
    settings: ModelSettings,
    messages: Sequence[Message],
    tools: Sequence[Tool] = (),
    limit: int | None = None,
) -> Asked:
    """The record of a request that is about to be made.

    Args:
        call: its name, unique in a run.
        settings: the model.
        messages, tools, limit: as for ``Chat.ask``.
    """
    return Asked(
        call,
        settings.name,
        request_key(settings.name, messages, tools, limit),
        chat.to_json(messages),
        [tool.to_json() for tool in tools],
        limit,
        reservation(settings, messages, tools, limit),
        settings.attempts,
    )


class Recorded:
    """A ``Chat`` that tells of every request before it is sent, and of what came back before it is used.

    Args:
        chat: who answers.
        record: told of each record, from the thread that asks; what it raises ends the request.
        call: name of this use of the chat, such as the number of the ask; its requests are ``call.1`` and on.
        asked: how many of them there were before.
    """

    def __init__(self, chat: Chat, record: Callable[[Record], None], call: str, asked: int = 0) -> None:
        self._chat, self._record, self._call, self._asked = chat, record, call, asked

    @property
    def settings(self) -> ModelSettings:
        """Those of the chat."""
        return self._chat.settings

    def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
    ) -> Answer:
        """See ``Chat``."""
        self._asked += 1
        asked = request(f"{self._call}.{self._asked}", self.settings, messages, tools, limit)
        call, key = asked.call, asked.key
        self._record(asked)
        try:
            answer = self._chat.ask(messages, tools, limit)
        except ChatError as why:
            self._record(Failed(call, key, type(why).__name__, str(why), why.spent))
            raise
        self._record(Answered(call, key, answer))
        return answer


class Replayed:
    """A ``Chat`` that gives recorded answers again, each once, in their order; it needs no key.

    Args:
        settings: those of the model that answered.
        records: what ``Recorded`` told.
    """

    def __init__(self, settings: ModelSettings, records: Iterable[Record]) -> None:
        self._settings = settings
        self._answers: dict[str, deque[Answered | Failed]] = defaultdict(deque)
        for record in records:
            if not isinstance(record, Asked):
                self._answers[record.key].append(record)

    @property
    def settings(self) -> ModelSettings:
        """Those of the model that answered."""
        return self._settings

    def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
    ) -> Answer:
        """See ``Chat``; it costs no time now, and says what it cost then."""
        known = self._answers[request_key(self._settings.name, messages, tools, limit)]
        if not known:
            raise Broken("no answer to this request was recorded")
        return given(known.popleft())


def given(record: Answered | Failed) -> Answer:
    """The answer once more.

    Raises:
        ChatError: of the kind that it failed with.
    """
    if isinstance(record, Answered):
        return record.answer
    raise KINDS.get(record.kind, ChatError)(record.reason, record.spent)
