"""Reflect: successes and failures become short lessons, each with the ids of the kernels that support it."""

from __future__ import annotations

from collections.abc import Sequence

from operators.agents import prompts
from operators.agents.answers import Unread, one_line
from operators.agents.chat import Answer, Chat
from operators.agents.context import AgentBrief, Lesson, Tried
from operators.agents.data import data
from operators.agents.offer import Offer, asked

MOST = 8  # lessons
SUPPORT = 2  # kernels that a lesson needs


class Reflect:
    """Lessons from results.

    Args:
        results: what was tried since, and what came of each.
    """

    name, arity = "agent_reflect", 0

    def __init__(self, results: Sequence[Tried]) -> None:
        self._results = tuple(results)

    def __call__(self, brief: AgentBrief, chat: Chat) -> Offer[tuple[Lesson, ...]]:
        """New lessons and those of ``brief.lessons`` that still hold, or why there are none."""
        known = {tried.id for tried in self._results} | {id for lesson in brief.lessons for id in lesson.ids}
        return asked(
            chat,
            brief,
            lambda less: prompts.conversation("reflect", less, results=self._results, most=MOST),
            lambda answer: read(answer, known),
            keeps=("lessons",),
        )


def read(answer: Answer, known: set[int]) -> tuple[Lesson, ...] | Unread:
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
        support = tuple(sorted(numbers & known))
        if text and len(support) >= SUPPORT:
            lessons.setdefault(text, Lesson(text, support))
    return tuple(lessons.values())[:MOST] or Unread("no lesson is supported by two of the kernels shown")
