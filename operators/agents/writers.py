"""Agents that write a kernel: draft, mutate, edit, cross, repair. One question, one child.

offer = Mutate()(brief, chat)
offer.value          a Proposal, or None
offer.reason         why there is none
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from operators.agents import answers, edits, prompts
from operators.agents.answers import Unread, Written
from operators.agents.chat import Answer, Chat, Message
from operators.agents.context import AgentBrief
from operators.agents.fitting import Fitted, TooLong, fitted
from operators.agents.models import ModelSettings
from operators.agents.offer import Offer, asked
from operators.proposal import Proposal
from populations.kernel import Kernel

APPROACHES = {
    "cpp": (
        "the plainest loops that the compiler turns into vectors, one parallel loop outside",
        "blocks that stay in the caches, so that memory is read once and written once",
        "explicit lanes: several accumulators, polynomials instead of library calls",
        "as few passes as the mathematics allows, with running results",
    ),
    "triton": (
        "the plainest kernel: one program for each row or tile, everything in registers",
        "running results over chunks of a long row, read once where that is possible",
        "work split over more programs than there are rows, joined in a second launch",
        "a persistent kernel whose programs loop over tiles",
    ),
}


class Writer:
    """An agent whose answer is a whole source; its template has its name.

    Attributes:
        name: as the log shows it.
        arity: how many parents it takes.
        keeps: what its prompt can't do without.
    """

    name: ClassVar[str]
    arity: ClassVar[int]
    keeps: ClassVar[Collection[str]] = ()

    def __call__(self, brief: AgentBrief, chat: Chat) -> Offer[Proposal]:
        """One child, or why there is none.

        Args:
            brief: with as many parents as ``arity``.
            chat: the model.

        Raises:
            ValueError: another number of parents.
        """
        self._check(brief)
        return asked(
            chat,
            brief,
            self._conversation,
            lambda answer: self.child(answer, brief, chat.settings.name),
            self.keeps,
        )

    def prompt(self, brief: AgentBrief, model: ModelSettings) -> Fitted | TooLong:
        """The question alone, for whoever sends it elsewhere or later.

        Args:
            brief: with as many parents as ``arity``.
            model: whose context it has to fit.

        Raises:
            ValueError: another number of parents.
        """
        self._check(brief)
        return fitted(self._conversation, brief, model, keeps=self.keeps)

    def child(self, answer: Answer, brief: AgentBrief, model: str) -> Proposal | Unread:
        """What an answer to ``prompt`` comes to.

        Args:
            answer: of the model.
            brief: of it only language, entry and the parents' sources count.
            model: its name.
        """
        made = self.read(answer, brief)
        if isinstance(made, Unread):
            return made
        why = made.rationale or f"{model} gave no reason"
        return Proposal(Kernel(made.source, brief.language), self.name, why, answer.spent.usage)

    def _check(self, brief: AgentBrief) -> None:
        if len(brief.parents) != self.arity:
            raise ValueError(f"{self.name} takes {self.arity} parents, not {len(brief.parents)}")

    def _conversation(self, brief: AgentBrief) -> Sequence[Message]:
        return prompts.conversation(self.name.removeprefix("agent_"), brief)

    def read(self, answer: Answer, brief: AgentBrief) -> Written | Unread:
        """The source in an answer."""
        known = [parent.kernel.source for parent in brief.parents]
        return answers.source(answer, brief.language, known, brief.entry)


class Draft(Writer):
    """A first kernel from the reference; ``brief.direction`` is the approach (see ``APPROACHES``)."""

    name, arity = "agent_draft", 0
    keeps = ("the reference", "the direction")


class Mutate(Writer):
    """Another structure for one parent."""

    name, arity = "agent_mutate", 1


class Cross(Writer):
    """One kernel from two, saying what it takes from each."""

    name, arity = "agent_cross", 2


class Repair(Writer):
    """A failed kernel made right, from the evidence of its failure.

    Attributes:
        attempts: how often one failed kernel, with its repaired children, is worth it.
    """

    name, arity = "agent_repair", 1
    keeps = ("the reference", "cases that are not timed")
    attempts: ClassVar[int] = 2


class Edit(Writer):
    """Search and replace in a long kernel, applied exactly or refused; a whole source is taken as well."""

    name, arity = "agent_edit", 1

    def read(self, answer: Answer, brief: AgentBrief) -> Written | Unread:
        """The parent with the answer's edits."""
        changes = edits.edits(answer)
        if isinstance(changes, Unread):
            instead = super().read(answer, brief)
            return changes if isinstance(instead, Unread) else instead
        made = edits.applied(brief.parents[0].kernel.source, changes)
        if isinstance(made, Unread):
            return made
        return Written(made, answers.rationale(answers.plain(answer.text)))


def refused(asked: Sequence[Message], answer: Answer, reason: str) -> tuple[Message, ...]:
    """The conversation in which an author hears why its source was not even built.

    Args:
        asked: the question.
        answer: with the source.
        reason: why it was refused.
    """
    said = Message("assistant", answers.plain(answer.text))
    return (*asked, said, Message("user", prompts.rendered("refused", reason=reason)))


WRITERS = (Draft(), Mutate(), Edit(), Cross(), Repair())
