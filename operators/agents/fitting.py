"""A prompt that fits its model: what may be left out goes first, in a declared order, and is recorded.

Sources of parents, the contract of the language, and the evidence of a failure are never left out: a prompt
that does not fit without the rest is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from operators.agents import chat
from operators.agents.chat import Message, Tool
from operators.agents.context import AgentBrief, Parent, ShownCase
from operators.agents.models import ModelSettings

LOG = 600  # characters that stay of a long log
FEW = 3


@dataclass(frozen=True)
class Cut:
    """One thing that may be left out: its name, as it is recorded, and the brief without it."""

    name: str
    apply: Callable[[AgentBrief], AgentBrief]


def _parents(change: Callable[[Parent], Parent]) -> Callable[[AgentBrief], AgentBrief]:
    return lambda brief: replace(brief, parents=tuple(map(change, brief.parents)))


def _shorter(log: str) -> str:
    return log if len(log) <= LOG else f"{log[: LOG // 2]}\n…\n{log[-LOG // 2 :]}"


def _short_log(parent: Parent) -> Parent:
    if parent.told is None:
        return parent
    return replace(parent, told=replace(parent.told, log=_shorter(parent.told.log)))


CUTS = (  # the first is left out first
    Cut("lessons beyond the first three", lambda brief: replace(brief, lessons=brief.lessons[:FEW])),
    Cut("failures beyond the last three", lambda brief: replace(brief, failures=brief.failures[-FEW:])),
    Cut("the middle of long logs", _parents(_short_log)),
    Cut("lessons", lambda brief: replace(brief, lessons=())),
    Cut("the guide's advice", lambda brief: replace(brief, advice=False)),
    Cut("cases that are not timed", lambda brief: replace(brief, cases=_timed(brief))),
    Cut("profiles", _parents(lambda parent: replace(parent, profile=""))),
    Cut("failures", lambda brief: replace(brief, failures=())),
    Cut("the diagnosis", _parents(lambda parent: replace(parent, diagnosis=None))),
    Cut("the direction", lambda brief: replace(brief, direction="")),
    Cut("the reference", lambda brief: replace(brief, reference="")),
)


@dataclass(frozen=True)
class Fitted:
    """A prompt that fits, what was left out for that, and the brief without it."""

    messages: tuple[Message, ...]
    left_out: tuple[str, ...]
    brief: AgentBrief


@dataclass(frozen=True)
class TooLong:
    """No prompt fits: one line that says by how much."""

    reason: str


def fitted(
    render: Callable[[AgentBrief], Sequence[Message]],
    brief: AgentBrief,
    model: ModelSettings,
    tools: Sequence[Tool] = (),
    keeps: Collection[str] = (),
    spare: int = 0,
) -> Fitted | TooLong:
    """The whole prompt, or what of it fits into the model's context beside a whole answer.

    Args:
        render: makes the messages from a brief.
        brief: all there is to say.
        model: whose context it is.
        tools: what the model may call; their descriptions take room too.
        keeps: names of cuts that this prompt can't do with.
        spare: tokens to be left for later turns.
    """
    left_out: list[str] = []
    room = model.room - spare
    messages = tuple(render(brief))
    for cut in (None, *CUTS):
        if cut is not None:
            less = brief if cut.name in keeps else cut.apply(brief)
            if less == brief:
                continue
            brief, messages = less, tuple(render(less))
            left_out.append(cut.name)
        if chat.size(messages, tools) <= room:
            return Fitted(messages, tuple(left_out), brief)
    return TooLong(
        f"the prompt has about {chat.size(messages, tools)} tokens without all that may be left out; "
        f"{model.name} has room for {room}"
    )


def _timed(brief: AgentBrief) -> tuple[ShownCase, ...]:
    return tuple(case for case in brief.cases if case.timed) or brief.cases[:1]
