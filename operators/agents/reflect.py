"""Reflect: successes and failures become short lessons, each with the ids of the kernels that support it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from operators.agents import prompts
from operators.agents.answers import Unread, one_line
from operators.agents.chat import Answer, Chat, Message
from operators.agents.context import AgentBrief, Tried
from operators.agents.data import data
from operators.agents.fitting import Fitted, TooLong, fitted
from operators.agents.models import ModelSettings
from operators.agents.offer import Offer, asked
from populations.learned import Lesson

MOST = 8  # lessons
SUPPORT = 2  # kernels that a lesson needs
KEEPS = ("lessons",)


class Reflect:
    """Lessons from results.

    Args:
        results: what was tried since, and what came of each.
        dropped: earlier lessons that did not hold.
    """

    name, arity = "agent_reflect", 0

    def __init__(self, results: Sequence[Tried], dropped: Sequence[str] = ()) -> None:
        self._results, self._dropped = tuple(results), tuple(dropped)

    def __call__(self, brief: AgentBrief, chat: Chat) -> Offer[tuple[Lesson, ...]]:
        """New lessons and those of ``brief.lessons`` that still hold, or why there are none."""
        known = self.about(brief)
        return asked(chat, brief, self._conversation, lambda answer: read(answer, known), KEEPS)

    def prompt(self, brief: AgentBrief, model: ModelSettings) -> Fitted | TooLong:
        """The question alone, for whoever sends it elsewhere or later; ``read`` reads its answer."""
        return fitted(self._conversation, brief, model, keeps=KEEPS)

    def about(self, brief: AgentBrief) -> tuple[int, ...]:
        """Ids of the kernels that the question names; others support nothing."""
        told = {tried.id for tried in self._results}
        return tuple(sorted(told | {id for lesson in brief.lessons for id in lesson.ids}))

    def _conversation(self, brief: AgentBrief) -> Sequence[Message]:
        further = {"results": self._results, "dropped": self._dropped, "most": MOST}
        return prompts.conversation("reflect", brief, **further)


def read(answer: Answer, known: Collection[int]) -> tuple[Lesson, ...] | Unread:
    """The lessons in an answer that at least two known kernels support."""
    found = data(answer)
    if isinstance(found, Unread):
        return found
    listed = found.get("lessons", found.get("items"))
    if not isinstance(listed, list):
        return Unread("the answer has no list of lessons")
    lessons: dict[str, Lesson] = {}
    for each in listed[: 4 * MOST]:
        if not isinstance(each, dict):
            continue
        text = one_line(str(each.get("lesson") or each.get("text") or ""))
        ids = each.get("kernels", each.get("ids"))
        numbers = {n for n in ids if type(n) is int} if isinstance(ids, list) else set()
        support = tuple(sorted(numbers.intersection(known)))
        if text and len(support) >= SUPPORT:
            lessons.setdefault(text, Lesson(text, support))
    return tuple(lessons.values())[:MOST] or Unread("no lesson is supported by two of the kernels shown")
