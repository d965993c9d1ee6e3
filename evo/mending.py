"""A source that was refused before it was built goes back to its author, once, with the refusal.

It has no number and no verdict, so nobody else could be asked to repair it; its conversation is in RUN/calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from evo.calls import Calls
from evo.delegating import Question
from evo.errands import Errands
from operators.agents import chat
from operators.agents.models import ModelSettings
from operators.agents.recorded import Answered
from operators.agents.writers import refused


def mending(errands: Errands, calls: Calls, free: Sequence[ModelSettings]) -> Question | None:
    """The oldest refusal that its author can be told of, as a question; None: there is none.

    Args:
        errands: what was refused.
        calls: keeps the conversations.
        free: models that a request may go to.
    """
    models = {model.name: model for model in free}
    for errand, reason in errands.refused.values():
        if (model := models.get(errand.model)) is None:
            continue
        asked, arrival = calls.request(errand.call), calls.answer(errand.call)
        if asked is None or arrival is None or not isinstance(arrival.record, Answered):
            continue
        messages = refused(chat.from_json(asked.messages), arrival.record.answer, reason)
        if chat.size(messages) <= model.room:
            return Question(errand.operator, model, errand.parents, messages, mends=errand.call)
    return None
