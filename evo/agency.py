"""Models beside the loop: what is asked of them, what arrives, and what becomes of it at a kill or the end.

The order is always the same: a request is stored, reserved in the log, sent; an answer is stored, settled in
the log, and only then used, by an ask of its own. So a population follows from the log alone, and a process
that resumes finds every answer that came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from evo.calls import GONE, Arrival, Calls, root_of, turn
from evo.counsel import Counsel
from evo.course import Course
from evo.delegating import Delegation, Question
from evo.errands import PROBE, Errand
from evo.ledger import Amount
from evo.mending import mending
from evo.talking import Talking
from operators.agents.models import ModelSettings
from operators.agents.probe import Probe
from operators.agents.recorded import Asked, request
from operators.agents.spent import Spent
from operators.proposal import Proposal
from populations.events import Certainty, Event, Reserved, Settled
from populations.state import State

GRACE_S = 5.0  # at the end, for answers that are paid for: what they cost is then known
Tell = Callable[[Event], None]


class Agency:
    """Sends questions, takes in answers. Use it from one thread.

    Args:
        delegation: chooses what to ask.
        calls: sends it.
        probes: what the models said at the start, to be charged.

    Attributes:
        refused: the latest call for a kernel, if a cap left no room for it; None: there was room.
    """

    def __init__(self, delegation: Delegation, calls: Calls, probes: Collection[Probe] = ()) -> None:
        self._delegation, self._calls, self._probes = delegation, calls, probes
        self._counsel = Counsel(delegation)
        self._talking = Talking(delegation, calls)
        self.refused: Amount | None = None

    def begin(self, course: Course, tell: Tell) -> None:
        """Charge the probes; of what an earlier process left open, take in what came, ask the rest again."""
        lost = [call for call in list(course.ledger.open) if not self._taken_in(call, tell)]
        for settled in course.ledger.unknown():
            tell(settled)
        for probe in self._probes:
            call = _call(course)
            tell(Reserved(call, 0, PROBE, probe.model, probe.spent.tokens, probe.spent.usd or 0.0))
            tell(_settled(call, probe.spent))
        for call in lost:
            self._again(call, course, tell)

    def collect(self, course: Course, tell: Tell, wait_s: float = 0.0) -> None:
        """Log what came back, oldest first, and what it says where no ask is needed for it.

        Args:
            course: what is known.
            tell: logs.
            wait_s: seconds to wait for the first, at most.
        """
        for arrival in self._calls.arrivals(wait_s):
            tell(arrival.settled())
        for errand in list(course.errands.counsel.values()):
            stored = self._calls.answer(errand.call)
            tell(self._counsel.heard(errand, stored.record if stored else None))

    def delegate(
        self,
        ask: int,
        state: State,
        course: Course,
        tell: Tell,
        needed: bool,
        left_s: float,
        room: bool = True,
    ) -> bool:
        """Send one more question if that is worth it; whether one was sent.

        Args:
            ask: the next ask's number.
            state, course: what is known.
            tell: logs.
            needed: whether nothing but a model can go on.
            left_s: seconds until answers are of no use any more.
            room: whether there are evaluations for one more child; a conversation that goes on has its own.
        """
        free = self._delegation.free(course, left_s)
        next_turn = self._talking.question(course.errands, free)
        if next_turn is not None and self._sent(next_turn, ask, course, tell) is None:
            return True
        if not room:
            return False
        mended = mending(course.errands, self._calls, free)
        for first in (mended, self._counsel.question(ask, free, state, course)):
            if first is not None and self._sent(first, ask, course, tell) is None:
                return True
        question = self._delegation.question(ask, free, state, course, needed)
        if question is None:
            return False
        self.refused = self._sent(question, ask, course, tell)
        return self.refused is None

    def _sent(self, question: Question, ask: int, course: Course, tell: Tell) -> Amount | None:
        """None: the question is on its way; else what it may cost, for which no cap has room."""
        call = _call(course)
        if question.talk is not None:
            call = turn(question.talk, course.errands.talks[question.talk].turns + 1)
        asked = request(call, question.model, question.messages, question.tools)
        if course.ledger.refusal(most(asked)) is not None:
            return most(asked)
        what = (question.parents, question.lessons, question.untold, question.mends)
        self._send(asked, ask, Errand(asked.call, question.operator, asked.model, *what), tell)
        return None

    def live(self, course: Course) -> list[ModelSettings]:
        """Models that are not left alone."""
        return self._delegation.models(course)

    @property
    def too_long(self) -> dict[str, str]:
        """Models that a prompt was too long for, and by how much."""
        return self._delegation.too_long

    def arrived(self, course: Course, taken: Collection[str]) -> Errand | None:
        """The oldest errand whose answer waits for an ask.

        Args:
            course: what is known.
            taken: calls that asks under way use.
        """
        waiting = (*course.errands.arrived.values(), *self._talking.waiting(course.errands))
        return next((each for each in waiting if each.call not in taken), None)

    def proposal(self, errand: Errand, course: Course) -> Proposal | str:
        """The child in an answer that arrived, or why there is none."""
        if (talk := course.errands.talks.get(root := root_of(errand.call))) is not None:
            return self._talking.proposal(root, talk)
        arrival = self._calls.answer(errand.call)
        if arrival is None:
            return GONE
        made = self._delegation.read(errand.operator, errand.parents, arrival.record)
        return replace(made, model=errand.model) if isinstance(made, Proposal) else made

    def finish(self, course: Course, tell: Tell) -> None:
        """No more is wanted: what is still under way is charged at its reservation, after a short wait."""
        until = time.monotonic() + GRACE_S
        while course.errands.open and (left := until - time.monotonic()) > 0:
            self.collect(course, tell, left)
        for settled in course.ledger.unknown():
            tell(settled)

    def close(self) -> None:
        """Give connections back."""
        self._calls.close()

    def _taken_in(self, call: str, tell: Tell) -> bool:
        """Whether the answer to an open call was stored before its process ended."""
        arrival: Arrival | None = self._calls.answer(call)
        if arrival is not None:
            tell(arrival.settled())
        return arrival is not None

    def _again(self, call: str, course: Course, tell: Tell) -> None:
        asked, lost = self._calls.request(call), course.errands.lost.get(call)
        if asked is None or lost is None or not course.ledger.may_repeat(call):
            return
        known = {each.name for each in self.live(course)}
        if asked.model in known and course.ledger.refusal(most(asked)) is None:
            asked = replace(asked, call=_call(course))
            self._send(asked, 0, replace(lost, call=asked.call), tell, again=call)

    def _send(self, asked: Asked, ask: int, errand: Errand, tell: Tell, again: str | None = None) -> None:
        cost, sha = most(asked), self._calls.keep(asked)
        tell(
            Reserved(
                asked.call,
                ask,
                errand.operator,
                asked.model,
                cost.tokens,
                cost.usd,
                again,
                errand.parents,
                sha,
                errand.lessons,
                errand.untold,
                errand.mends,
            )
        )
        self._calls.send(asked)


def _call(course: Course) -> str:
    """The name of the next call."""
    return f"{course.errands.begun + 1}.1"


def most(asked: Asked) -> Amount:
    """What a request may cost with all its attempts."""
    reserved = asked.reserved
    return Amount(asked.attempts * reserved.tokens, asked.attempts * (reserved.usd or 0.0))


def _settled(call: str, spent: Spent) -> Settled:
    certainty = Certainty.ESTIMATED if spent.estimated else Certainty.COUNTED
    return Settled(call, spent.tokens, spent.usd or 0.0, spent.seconds, certainty)
