"""Conversations in which a model tries kernels: told again from their records, up to what nobody knows yet.

Each request is a call of its own and each kernel that is tried an evaluation like any other, so what is in
the log and in RUN/calls is all there is of a conversation, and a process that resumes goes on with it. To go
on is to let the agent talk again: it hears the answers that are recorded and the verdicts that are known. At
the first thing that is not, it is interrupted, and that is what has to be done next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evo.briefing import Briefing
from evo.calls import GONE, Calls, turn
from evo.delegating import Delegation, Question
from evo.errands import Errand, Errands, Talk
from operators.agents import prompts
from operators.agents.answers import Unread, one_line
from operators.agents.chat import Answer, Message, Tool, ToolResult, from_json
from operators.agents.context import AgentBrief
from operators.agents.errors import Broken
from operators.agents.explore import TRY, Explore, handed
from operators.agents.models import ModelSettings
from operators.agents.recorded import given
from operators.proposal import Proposal
from populations.kernel import Kernel

Call = Callable[[Mapping[str, Any]], ToolResult]


class _Waits(Exception):
    """A request that was not made yet."""

    def __init__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> None:
        super().__init__("a request has to be made")
        self.messages, self.tools = tuple(messages), tuple(tools)


class _Tries(Exception):
    """A kernel that was not tried yet."""

    def __init__(self, kernel: Kernel, why: str) -> None:
        super().__init__("a kernel has to be tried")
        self.kernel, self.why = kernel, why


Next = _Waits | Proposal | str  # what a conversation needs, or what it came to


class Talking:
    """Carries conversations on.

    Args:
        delegation: began them.
        calls: keeps their requests and answers.
    """

    def __init__(self, delegation: Delegation, calls: Calls) -> None:
        self._briefing, self._calls = delegation.briefing, calls
        self._models = {model.name: model for model in delegation.settings.models}
        self._known: dict[str, tuple[tuple[int, int], Next]] = {}

    def question(self, errands: Errands, free: Sequence[ModelSettings]) -> Question | None:
        """The next turn of the oldest conversation that waits for one; None: none does.

        Args:
            errands: what is under way.
            free: models that a request may go to.
        """
        self._known = {root: known for root, known in self._known.items() if root in errands.talks}
        for root, talk in _quiet(errands):
            found = self._next(root, talk)
            if isinstance(found, _Waits):
                model = next((each for each in free if each.name == talk.errand.model), None)
                if model is not None:
                    return Question(
                        Explore.name, model, talk.errand.parents, found.messages, tools=found.tools, talk=root
                    )
        return None

    def waiting(self, errands: Errands) -> list[Errand]:
        """Errands of conversations that need an ask, oldest first: to try a kernel, or to end."""
        return [
            talk.errand
            for root, talk in _quiet(errands)
            if not isinstance(self._next(root, talk), _Waits)
        ]

    def proposal(self, root: str, talk: Talk) -> Proposal | str:
        """The kernel that a conversation in ``waiting`` has to be asked for, or why it ends without one."""
        found = self._next(root, talk)
        assert not isinstance(found, _Waits)
        return found

    def _next(self, root: str, talk: Talk) -> Next:
        at = (talk.turns, len(talk.tried))
        if self._known.get(root, (None, None))[0] != at:
            self._known[root] = at, self._retold(root, talk)
        return self._known[root][1]

    def _retold(self, root: str, talk: Talk) -> Next:
        model, begun = self._models.get(talk.errand.model), self._calls.request(turn(root, 1))
        if model is None or begun is None:
            return GONE
        brief = self._briefing.of(talk.errand.parents, None)
        chat = _Retold(model, self._calls, root, talk.turns)
        agent = explorer(self._briefing, _tried(talk, brief, self._briefing))
        try:
            offer = agent.talk(from_json(begun.messages), brief, chat)
        except _Waits as waits:
            return waits
        except _Tries as tries:
            return Proposal(tries.kernel, TRY, tries.why)
        return offer.reason if offer.value is None else offer.value


class _Retold:
    """A ``Chat`` that gives the answers of a conversation again and is interrupted by a new question."""

    def __init__(self, settings: ModelSettings, calls: Calls, root: str, turns: int) -> None:
        self.settings = settings
        self._calls, self._root, self._turns, self._asked = calls, root, turns, 0

    def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
    ) -> Answer:
        """See ``Chat``."""
        del limit
        self._asked += 1
        if self._asked > self._turns:
            raise _Waits(messages, tools)
        arrival = self._calls.answer(turn(self._root, self._asked))
        if arrival is None:
            raise Broken(GONE)
        return given(arrival.record)


def explorer(briefing: Briefing, tried: Call | None = None) -> Explore:
    """The agent with its tools.

    Args:
        briefing: what it may read.
        tried: what came of a kernel; None: to begin a conversation nothing has to.
    """

    def look(arguments: Mapping[str, Any]) -> ToolResult:
        id = arguments["kernel"]
        parent = briefing.known(id) if isinstance(id, int) else None
        if parent is None:
            return ToolResult(f"There is no kernel {one_line(str(id), 20)} that you may read.")
        return ToolResult(prompts.rendered("look", parent=parent, parents=briefing.parents(parent.id)))

    trying = _TRY if tried is None else replace(_TRY, call=tried)
    return Explore((trying, replace(_LOOK, call=look), briefing.guide))


def _tried(talk: Talk, brief: AgentBrief, briefing: Briefing) -> Call:
    """Tells of the kernels that were tried, in order, and is interrupted by the first that was not."""
    known = iter(talk.tried)

    def tried(arguments: Mapping[str, Any]) -> ToolResult:
        read = handed(arguments, brief)
        if isinstance(read, Unread):
            return ToolResult(f"Not tried: {read.reason}.")
        one = next(known, None)
        if one is None:
            raise _Tries(Kernel(read.source, brief.language), read.rationale or "tried before handing in")
        if one.id is None:
            return ToolResult(f"Not tried: {one.reason}.")
        return ToolResult(prompts.rendered("tried", parent=briefing.known(one.id)), one.device_s or 0.0)

    return tried


def _quiet(errands: Errands) -> list[tuple[str, Talk]]:
    """Conversations that neither a model nor the device is at."""
    return [
        (root, talk)
        for root, talk in errands.talks.items()
        if talk.errand.call not in errands.open and talk.judging is None
    ]


_TRY = Tool(
    "try_kernel",
    "Have a kernel built, checked on the cases, and timed; one evaluation of the search. Answers what a "
    "verdict says: what is wrong and where, or the speed, and what the binary takes.",
    {
        "type": "object",
        "properties": {
            "source": {"type": "string", "description": "the whole source"},
            "rationale": {"type": "string", "description": "one line on what it tests"},
        },
        "required": ["source"],
    },
)
_LOOK = Tool(
    "look_at",
    "Read a kernel of this search by its number: its source, its verdict, and what it was made from.",
    {
        "type": "object",
        "properties": {"kernel": {"type": "integer", "description": "its number"}},
        "required": ["kernel"],
    },
)
