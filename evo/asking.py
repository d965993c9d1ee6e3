"""What an ask comes to before it is built: a starting kernel, a model's answer, or a child of an operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Protocol

from evo.agency import Agency
from evo.course import Course
from evo.errands import Errand
from evo.ledger import MINUTES
from evo.settings import Settings
from evo.strategy import Draft, Strategy
from evo.stream import Batch, Birth
from fitness.target import Admission
from operators.proposal import Proposal
from populations.events import Event, Stillborn
from populations.kernel import Kernel
from populations.state import State
from populations.verdict import Verdict

KNOWN_SOURCE = "a duplicate of an earlier kernel"
ATTEMPTS = 5  # of one ask, until a child is no duplicate
WAIT_S = 1.0  # for an answer, until the budget is looked at again


class Admits(Protocol):
    """What an ask needs of a device."""

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See ``fitness.target.Target``."""


class Asking:
    """Makes asks, and speaks to models in between.

    Args:
        strategy: what to try next, without models.
        agency: speaks to models; None: there are none.
        device: admits kernels.
        state, course: what is known.
        settings: the budget and the patience.
        tell: logs an event.
        note: tells people a line.
    """

    def __init__(
        self,
        strategy: Strategy,
        agency: Agency | None,
        device: Admits,
        state: State,
        course: Course,
        settings: Settings,
        tell: Callable[[Event], None],
        note: Callable[[str], None],
    ) -> None:
        self._strategy, self._agency, self._device = strategy, agency, device
        self._state, self._course, self._settings = state, course, settings
        self._tell, self._note = tell, note
        self._left_s = math.inf  # of the run
        self._stuck = False  # no model can be asked, and nothing else is left

    def begin(self) -> None:
        """See ``Agency``."""
        if self._agency is not None:
            self._agency.begin(self._course, self._tell)

    def finish(self) -> None:
        """See ``Agency``."""
        if self._agency is not None:
            self._agency.finish(self._course, self._tell)

    def close(self) -> None:
        """See ``Agency``."""
        if self._agency is not None:
            self._agency.close()

    def cap(self, wall_s: float) -> str | None:
        """The cap at which the run has to stop; None: it may go on.

        Args:
            wall_s: seconds that it took, and will take to close.
        """
        if self._settings.minutes is not None:
            self._left_s = 60.0 * self._settings.minutes - wall_s
        if self._stuck and self._answers_come_late():
            return MINUTES
        refused = self._agency.refused if self._agency and not self._course.errands.open else None
        return self._course.ledger.reached(wall_s, refused)

    @property
    def models_may_help(self) -> bool:
        """Whether a search that nothing else can go on with waits for models."""
        patient = self._course.barren < 2 * self._settings.patience
        return self._agency is not None and patient and not self._stuck and not self._structural()

    def propose(self, ask: int, batch: Batch) -> Stillborn | Birth | None:
        """An answer that arrived, else a child of an operator; None: there is nothing to ask for now.

        Args:
            ask: its number.
            batch: what is under way; the ask is added to it.
        """
        self._delegate(ask, len(batch.known))
        asked: Stillborn | Birth | None = None
        errand = self._agency.arrived(self._course, batch.calls) if self._agency else None
        if self._agency is not None and errand is not None and ask > self._strategy.seeds:
            asked = self._answered(ask, errand, self._agency.proposal(errand, self._course), batch)
        elif self._agency is None or ask <= self._strategy.seeds or self._structural():
            asked = self._asked(ask, batch)
        if asked is not None:
            batch.add(asked, self._course)
        return asked

    def collect(self, wait_s: float = 0.0) -> None:
        """Take in what models answered.

        Args:
            wait_s: seconds to wait for the first answer, at most.
        """
        if self._agency is None:
            return
        before = self._agency.live(self._course)
        self._agency.collect(self._course, self._tell, wait_s)
        for model in before:
            if why := self._course.errands.off(model.name, model.parallel):
                self._note(f"model {model.name} is asked no more: {why}")

    def wait(self) -> None:
        """Nothing can go on but by a model: ask as many as are free, and wait for the next answer."""
        while self._delegate(self._state.next_ask, needed=True):
            pass
        if self._course.errands.open:
            self.collect(WAIT_S)
        else:
            self._stuck = self._agency is None or self._agency.arrived(self._course, ()) is None

    def _answers_come_late(self) -> bool:
        """Whether models could be asked if there were more time."""
        live = self._agency.live(self._course) if self._agency else []
        return bool(live) and all(self._course.errands.usual_s(each.name) >= self._left_s for each in live)

    def _structural(self) -> bool:
        """Whether an operator that needs no model has something to start from."""
        return len(self._state.archive) > 0 and self._course.barren < self._settings.patience

    def _delegate(self, ask: int, births: int = 0, needed: bool = False) -> bool:
        """One more question to a model, where one is free and its answer has a place in the budget."""
        errands, limit = self._course.errands, self._settings.evaluations
        spoken_for = self._state.evaluations + births + errands.children
        if self._agency is None:
            return False
        room = limit is None or spoken_for < limit
        before = len(self._agency.too_long)
        sent = self._agency.delegate(
            ask, self._state, self._course, self._tell, needed, self._left_s, room
        )
        for why in list(self._agency.too_long.values())[before:]:
            self._note(f"{why}; raise its context in the settings if it takes more")
        return sent

    def _answered(self, ask: int, errand: Errand, made: Proposal | str, batch: Batch) -> Stillborn | Birth:
        """What somebody's answer comes to. A duplicate is one: nobody else's child goes under its name."""
        model, operator = errand.model or None, errand.operator
        if isinstance(made, Proposal):
            operator = made.operator  # a kernel may be tried before one is handed in
        draft = Draft(ask, operator, errand.parents, None, Random(ask), model=model, call=errand.call)
        if isinstance(made, str):
            return stillborn(draft, made)
        admission = self._device.admit(made.kernel)
        if isinstance(admission, Verdict):
            return replace(stillborn(draft, admission.reason), refused=True)
        if admission.normal_sha in batch.known or self._state.seen(admission.normal_sha):
            return stillborn(draft, KNOWN_SOURCE)
        return replace(draft, proposal=made), admission

    def _asked(self, ask: int, batch: Batch) -> Stillborn | Birth:
        draft = self._strategy.ask(ask, self._state, self._course, batch.tuned, batch.spent)
        reason = draft.reason
        for attempt in range(1, ATTEMPTS + 1):
            if draft.proposal is None:
                break
            admission = self._device.admit(draft.proposal.kernel)
            if isinstance(admission, Verdict):
                reason = admission.reason
                break
            if admission.normal_sha not in batch.known and not self._state.seen(admission.normal_sha):
                return draft, admission
            reason = KNOWN_SOURCE
            draft = self._strategy.onward(draft, self._state, self._course, attempt)
        return stillborn(draft, reason)


def stillborn(draft: Draft, reason: str) -> Stillborn:
    """The end of an ask that leads to no evaluation."""
    return Stillborn(draft.ask, draft.operator, draft.parents, reason, model=draft.model, call=draft.call)
