"""Agentic variation: the model tries things out with tools before it hands in one child.

The tools are callables that are passed in; nothing that the model writes runs here. The loop is bounded in
turns, tokens and seconds of the device; at the end of any, it is asked once more for what it has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from operators.agents import answers, prompts
from operators.agents import chat as chats
from operators.agents.answers import Unread, Written, one_line
from operators.agents.chat import Answer, Chat, Message, Tool, ToolCall
from operators.agents.context import AgentBrief
from operators.agents.errors import ChatError
from operators.agents.fitting import Fitted, TooLong, fitted
from operators.agents.models import ModelSettings
from operators.agents.offer import Offer
from operators.agents.spent import Spent
from operators.proposal import Proposal
from populations.kernel import Kernel

TRY = "agent_try"  # the operator of a kernel that is tried before one is handed in
HAND_IN = "hand_in"
RESULT = 8000  # characters of a tool's answer
SPARE = 2048  # tokens of the context that the first turn leaves to the others
CALLS = 4  # of one turn
GONE = "[left out: the conversation is too long]"


@dataclass(frozen=True)
class Budget:
    """What one conversation may take: answers of the model, tokens of all requests, seconds of the device."""

    turns: int = 8
    tokens: int = 100_000
    device_s: float = 60.0


class Explore:
    """A bounded conversation with tools.

    Args:
        tools: what the model may call beside ``hand_in``: compile, check, time, profile, read the lineage.
        budget: where it ends.
    """

    name, arity = "agent_explore", 1

    def __init__(self, tools: Sequence[Tool], budget: Budget | None = None) -> None:
        if any(tool.name == HAND_IN for tool in tools):
            raise ValueError(f"{HAND_IN!r} is taken: it ends the conversation")
        self._tools, self._budget = tuple(tools), budget or Budget()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """All that the model may call."""
        return (*self._tools, _HAND_IN)

    def __call__(self, brief: AgentBrief, chat: Chat) -> Offer[Proposal]:
        """One child, or why there is none."""
        prompt = self.prompt(brief, chat.settings)
        if isinstance(prompt, TooLong):
            return Offer(None, prompt.reason, model=chat.settings.name)
        return replace(self.talk(prompt.messages, brief, chat), left_out=prompt.left_out)

    def prompt(self, brief: AgentBrief, model: ModelSettings) -> Fitted | TooLong:
        """How the conversation begins."""
        return fitted(
            lambda less: prompts.conversation("explore", less, budget=self._budget),
            brief,
            model,
            self.offered,
            spare=min(SPARE, model.room // 4),
        )

    def talk(self, messages: Sequence[Message], brief: AgentBrief, chat: Chat) -> Offer[Proposal]:
        """The conversation from its first question on. What ``chat`` or a tool raises ends it, but for
        a ``ChatError``.

        Args:
            messages: the first question, as ``prompt`` makes it.
            brief: of it only language, entry and the parents' sources count.
            chat: the model.
        """
        talk = _Talk(chat, brief, self.offered, self._budget, list(messages))
        found = talk.ended()
        model = chat.settings.name
        offer: Offer[Proposal] = Offer(None, "", talk.spent, (), model, talk.failure)
        if isinstance(found, Unread):
            return replace(offer, reason=found.reason)
        why = found.rationale or f"{model} gave no reason"
        child = Proposal(Kernel(found.source, brief.language), self.name, why, talk.spent.usage)
        return replace(offer, value=child)


class _Talk:
    """One conversation and what it has taken so far."""

    def __init__(
        self, chat: Chat, brief: AgentBrief, tools: Sequence[Tool], budget: Budget, messages: list[Message]
    ) -> None:
        self._chat, self._brief, self._budget, self._messages = chat, brief, budget, messages
        self._tools = {tool.name: tool for tool in tools}
        self._first = len(messages)
        self._turns, self._device_s = 0, 0.0
        self.spent = Spent()
        self.failure: ChatError | None = None

    def ended(self) -> Written | Unread:
        """What the model hands in, or why it does not."""
        while True:
            why = self._over()
            if why is not None:
                text = prompts.rendered("hand_in_now", brief=self._brief, why=why)
                self._messages.append(Message("user", text))
            answer = self._turn(() if why is not None else tuple(self._tools.values()))
            if isinstance(answer, Unread):
                return answer
            if why is not None or not answer.calls:
                return self._source(answer)
            self._messages.append(Message("assistant", answer.text, answer.calls))
            for n, call in enumerate(answer.calls):
                done = self._called(call, n)
                if isinstance(done, Written):
                    return done
                self._messages.append(Message("tool", done, answers=call.id))

    def _turn(self, tools: tuple[Tool, ...]) -> Answer | Unread:
        if not self._fits(tools):
            return Unread("the conversation is longer than the model's context")
        self._turns += 1
        try:
            answer = self._chat.ask(self._messages, tools)
        except ChatError as why:
            self.spent, self.failure = self.spent + why.spent, why
            return Unread(str(why))
        self.spent += answer.spent
        return answer

    def _fits(self, tools: tuple[Tool, ...]) -> bool:
        """Leave out what tools answered, the oldest first, until the conversation fits."""
        for n in range(self._first, len(self._messages)):
            if chats.size(self._messages, tools) <= self._chat.settings.room:
                break
            if self._messages[n].role == "tool":
                self._messages[n] = replace(self._messages[n], text=GONE)
        return chats.size(self._messages, tools) <= self._chat.settings.room

    def _over(self) -> str | None:
        """Which part of the budget is spent."""
        budget = self._budget
        if self._turns >= budget.turns:
            return f"{budget.turns} turns"
        if self.spent.tokens >= budget.tokens:
            return f"{budget.tokens} tokens"
        return f"{budget.device_s:g} s of the device" if self._device_s >= budget.device_s else None

    def _called(self, call: ToolCall, n: int) -> str | Written:
        """A tool's answer with what is left, or what was handed in."""
        tool = self._tools.get(call.name)
        if tool is None:
            return f"There is no tool {one_line(call.name, 60)!r}; there are {', '.join(self._tools)}."
        arguments = _arguments(call)
        if arguments is None:
            return "The arguments are not a JSON object."
        missing = [name for name in tool.parameters.get("required", ()) if name not in arguments]
        if missing:
            return f"The argument {missing[0]!r} is missing."
        if tool is _HAND_IN:
            read = handed(arguments, self._brief)
            return f"Not taken: {read.reason}." if isinstance(read, Unread) else read
        if n >= CALLS or self._device_s >= self._budget.device_s:
            return f"Not done: at most {CALLS} calls a turn, and none when the device's seconds are spent."
        result = tool.call(arguments)
        self._device_s += result.device_s
        text = result.text if len(result.text) <= RESULT else f"{result.text[:RESULT]}\n[cut]"
        return f"{text}\n{self._left()}"

    def _left(self) -> str:
        turns, tokens = self._budget.turns - self._turns, self._budget.tokens - self.spent.tokens
        seconds = self._budget.device_s - self._device_s
        return (
            f"[left: {max(turns, 0)} turns, {max(tokens, 0)} tokens, {max(seconds, 0.0):.0f} s of the device]"
        )

    def _source(self, answer: Answer) -> Written | Unread:
        return _source(answer, self._brief)


def handed(arguments: Mapping[str, Any], brief: AgentBrief) -> Written | Unread:
    """The kernel in a tool's arguments ``source`` and ``rationale``.

    Args:
        arguments: as the model gave them.
        brief: of it only language, entry and the parents' sources count.
    """
    text, why = str(arguments.get("source", "")), one_line(str(arguments.get("rationale", "")))
    tag = prompts.TAGS.get(brief.language, "")
    read = _source(Answer(text if "```" in text else prompts.fenced(text, tag)), brief)
    return read if isinstance(read, Unread) else Written(read.source, why or read.rationale)


def _source(answer: Answer, brief: AgentBrief) -> Written | Unread:
    known = [parent.kernel.source for parent in brief.parents]
    return answers.source(answer, brief.language, known, brief.entry)


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        found = json.loads(call.arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_HAND_IN = Tool(
    HAND_IN,
    "Hand in your kernel, whole; this ends the conversation.",
    {
        "type": "object",
        "properties": {
            "source": {"type": "string", "description": "the whole source"},
            "rationale": {"type": "string", "description": "one line on why it is faster"},
        },
        "required": ["source", "rationale"],
    },
)
