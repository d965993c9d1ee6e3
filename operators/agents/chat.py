"""Talking to a language model: one protocol, ``Chat``, and the values that pass through it.

    answer = chat.ask([Message("system", "…"), Message("user", "…")], limit=4000)
    answer.text, answer.calls, answer.finish, answer.spent

``operators.agents.client.Client`` talks to a server, ``ScriptedChat`` gives prepared answers,
``Recorded`` tells somebody of every request and answer, ``Replayed`` gives recorded answers again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from operators.agents.models import ModelSettings
from operators.agents.spent import Spent

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolCall:
    """A function that the model wants called. ``arguments`` is JSON, or what it took for JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: who speaks.
        text: what is said.
        calls: of an assistant: the functions it wants called.
        answers: of a tool: the id of the call that this text answers.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """What a tool found out, as text for the model, and what it took of the device."""

    text: str
    device_s: float = 0.0


def _elsewhere(_: Mapping[str, Any]) -> ToolResult:
    raise NotImplementedError("this tool only tells a model what it may call")


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.

    Attributes:
        name: what the model calls it.
        description: when to use it and what it answers.
        parameters: JSON schema of its arguments, an object.
        call: does it, given the arguments as plain JSON data; what it raises ends the conversation, so what
            the model may learn from is a result. Left out where somebody else does it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], ToolResult] = field(default=_elsewhere, compare=False)

    def to_json(self) -> dict[str, Any]:
        """What the model is told of it."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class Answer:
    """What the model said.

    Attributes:
        text: all of it; empty where it only calls tools.
        calls: functions it wants called.
        finish: why it stopped: "stop", "length", "tool_calls", "content_filter", or the server's own word.
        refusal: its words where it declines.
        model: name of the model as the server gives it.
        spent: what the request cost.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    refusal: str | None = None
    model: str = ""
    spent: Spent = field(default_factory=Spent)

    @property
    def cut(self) -> bool:
        """Whether the token limit ended it."""
        return self.finish == "length"


class Chat(Protocol):
    """A model that answers. May be asked from several threads at once."""

    @property
    def settings(self) -> ModelSettings:
        """Its name, prices and limits."""

    def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
    ) -> Answer:
        """The next turn of a conversation.

        Args:
            messages: the conversation so far.
            tools: what the model may call; they are not called here.
            limit: tokens the answer may have; None: the model's ``max_output``.

        Raises:
            ChatError: there is no answer; what it cost is in ``spent``.
        """


def to_json(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """A conversation as plain JSON data; ``from_json`` reads it back."""
    return [
        {
            "role": message.role,
            "text": message.text,
            **({"calls": [vars(call).copy() for call in message.calls]} if message.calls else {}),
            **({"answers": message.answers} if message.answers is not None else {}),
        }
        for message in messages
    ]


def from_json(data: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The conversation that ``to_json`` wrote."""
    return tuple(
        Message(
            each["role"],
            each["text"],
            tuple(ToolCall(**call) for call in each.get("calls", ())),
            each.get("answers"),
        )
        for each in data
    )


def tools_from_json(data: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Tools as a model was told of them; whoever reads its answer does what it calls for."""
    return tuple(Tool(**each) for each in data)


def size(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """Tokens of a whole request, rather too many than too few (see ``operators.agents.tokens``)."""
    from operators.agents.tokens import PER_MESSAGE, count

    said = sum(
        PER_MESSAGE
        + count(message.text)
        + sum(count(call.name) + count(call.arguments) + PER_MESSAGE for call in message.calls)
        for message in messages
    )
    return said + sum(count(json.dumps(tool.to_json())) + PER_MESSAGE for tool in tools) + PER_MESSAGE
