"""Proposals that were made elsewhere become asks of the judging half, each once.

What a proposal cost is logged as a call, ``Reserved`` and ``Settled``, unless the log holds it; its ask ends,
like that of an answer, as ``Proposed`` or ``Stillborn`` with the call's name. So a judge that is killed goes
on where it was, whichever of the three was logged. A request that was open when its process ended is charged
at its reservation as unknown; should its answer come after all, it is used and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from evo import parcels
from evo.asking import Admits, Asking
from evo.calls import Calls
from evo.course import TUNE, Course
from evo.errands import PROBE, Errand
from evo.parcels import RATIONALE, UNREAD, Damaged, Parcel, call_of, line
from evo.settings import Settings
from evo.strategy import Strategy
from evo.stream import Batch, Birth
from evo.toolset import structure
from operators.proposal import Proposal, Usage
from populations.events import Event, Stillborn
from populations.folder import PROPOSALS
from populations.kernel import Kernel
from populations.log import EventLog
from populations.state import State

USED_UP = "proposals"  # why a judge stops: there are no more
AT_ONCE = 1000  # proposals that one judge takes
Tell = Callable[[Event], None]


class Inbox:
    """The proposals in a run's folder.

    Args:
        log: the run.
        language: of its kernels.
        note: tells people a line.
    """

    def __init__(self, log: EventLog, language: str, note: Callable[[str], None]) -> None:
        self._log, self._language, self._note = log, language, note
        self._folder, self._run = log.folder / PROPOSALS, log.identity()
        self._calls = Calls(log.folder, {})
        self._new: list[str] = []  # ids whose outcome is known, and that the log does not hold to their end
        self._lost: list[Parcel] = []  # requests that nobody waits for any more, and that are not charged
        self._waiting: dict[str, tuple[Errand, Proposal | str]] = {}  # by call

    def look(self, course: Course) -> bool:
        """Whether there is anything that the log does not hold."""
        ended, open_ = parcels.listed(self._folder)
        self._new = [id for id in ended if call_of(id) not in course.errands.used]
        self._lost = []
        for id in open_:
            if not course.ledger.knows(call_of(id)) and not parcels.alive(self._folder, id):
                try:
                    self._lost.append(parcels.read(self._folder, id, self._run, ended=False))
                except Damaged as why:
                    self._note(f"{PROPOSALS}/{id}.asked.json: {why}; what it cost is not known")
        return bool(self._new or self._lost)

    def begin(self, state: State, course: Course, tell: Tell) -> None:
        """Log what those cost that ``look`` found, and make them ready for their asks.

        Args:
            state, course: what is known.
            tell: logs.
        """
        if (left := len(self._new) - AT_ONCE) > 0:
            self._note(f"{left} of {len(self._new)} proposals are left for the next `kernel-evo judge`")
        for parcel in self._lost:
            self._charge(parcel, state, course, tell)
        for id in self._new[:AT_ONCE]:
            call = call_of(id)
            try:
                parcel = parcels.read(self._folder, id, self._run)
                self._charge(parcel, state, course, tell)
                made = self._made(parcel, state)
            except Damaged as why:
                self._note(f"{PROPOSALS}/{id}.json: {why}; counted as a still-birth")
                self._waiting[call] = Errand(call, UNREAD, "", ()), str(why)
                continue
            if parcel.operator != PROBE:
                self._waiting[call] = Errand(call, parcel.operator, parcel.model or "", parcel.ids), made

    def left(self, course: Course) -> bool:
        """Whether any of them still has to end."""
        return any(call not in course.errands.used for call in self._waiting)

    def arrived(self, course: Course, taken: Collection[str]) -> tuple[Errand, Proposal | str] | None:
        """The next one, and the child in it or why there is none.

        Args:
            course: what is known.
            taken: calls that asks under way use.
        """
        used, waiting = course.errands.used, self._waiting.items()
        return next((one for call, one in waiting if call not in used and call not in taken), None)

    def _charge(self, parcel: Parcel, state: State, course: Course, tell: Tell) -> None:
        """The events of its call that the log does not hold, after its records."""
        call, known = parcel.call, course.ledger.knows(parcel.call)
        if parcel.model is None or (known and call not in course.ledger.open):
            return
        asked = self._calls.keep(replace(parcel.asked, call=call)) if parcel.asked else None
        answer = self._calls.keep(replace(parcel.answer, call=call)) if parcel.answer else None
        if not known:
            tell(parcel.reserved(state.next_ask, asked))
        tell(parcel.settled(answer))

    def _made(self, parcel: Parcel, state: State) -> Proposal | str:
        """The child, or why there is none.

        Raises:
            Damaged: it cannot be one of this run.
        """
        for id, sha in parcel.parents:
            if id >= state.next_id or self._log.proposed(id).source_sha != sha:
                raise Damaged(f"its parent, kernel {id}, is not the one of this run")
        if parcel.source is None:
            return line(parcel.reason) or "there is no kernel in it"
        kernel = Kernel(parcel.source, parcel.language)
        if kernel.language != self._language:
            raise Damaged(f"it is written in {kernel.language}, the run's kernels in {self._language}")
        if parcel.operator == TUNE and not self._same_structure(kernel, parcel.ids[0]):
            raise Damaged(f"it is not kernel {parcel.ids[0]} with other numbers")
        why = line(parcel.rationale, RATIONALE) or "no reason was given"
        return Proposal(
            kernel, parcel.operator, why, Usage(parcel.tokens, parcel.usd, parcel.seconds), parcel.model
        )

    def _same_structure(self, kernel: Kernel, parent: int) -> bool:
        try:
            return structure(kernel) == structure(self._log.kernel(self._log.proposed(parent).source_sha))
        except (ValueError, KeyError, SyntaxError):
            return False


class Taking(Asking):
    """Asks of a judge: starting kernels that are left, then what an inbox holds, and no more.

    Args:
        inbox: the proposals.
        strategy, device, state, course, settings, tell, note: as for ``Asking``.
    """

    def __init__(
        self,
        inbox: Inbox,
        strategy: Strategy,
        device: Admits,
        state: State,
        course: Course,
        settings: Settings,
        tell: Tell,
        note: Callable[[str], None],
    ) -> None:
        super().__init__(strategy, None, device, state, course, settings, tell, note)
        self._inbox = inbox

    def begin(self) -> None:
        """See ``Inbox``."""
        self._inbox.begin(self._state, self._course, self._tell)

    def cap(self, wall_s: float) -> str | None:
        """Nothing but the end of the proposals stops a judge: what they cost is spent."""
        del wall_s
        return None if self._inbox.left(self._course) else USED_UP

    @property
    def models_may_help(self) -> bool:
        """Whether there are more, whatever became of those before."""
        return self._inbox.left(self._course)

    def propose(self, ask: int, batch: Batch) -> Stillborn | Birth | None:
        """The next proposal; None: all are under way, or have ended."""
        if ask <= self._strategy.seeds:
            return super().propose(ask, batch)
        if (arrived := self._inbox.arrived(self._course, batch.calls)) is None:
            return None
        asked = self._answered(ask, *arrived, batch)
        batch.add(asked, self._course)
        return asked
