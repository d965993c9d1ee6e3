"""The half that proposes: it has models or operators, no device, and reads a run's snapshot alone.

The snapshot's events are folded as in the half that judges; what is asked and what it costs is applied to
that fold as well, and so is what other processes left in RUN/proposals. A request is announced there before
the caps are looked at: of two processes that announce at once each sees the other, so together they stay
within the run's caps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from evo import models
from evo.agency import most
from evo.asking import Asking
from evo.calls import Arrival, Calls, turn
from evo.delegating import Delegation, Question
from evo.errands import PROBE
from evo.folded import Search, found
from evo.ledger import Amount, Caps, Ledger, refuse_unpriced
from evo.outbox import Outbox
from evo.parcels import Parcel
from evo.settings import checked
from evo.stream import Batch
from fitness.target import Admission
from operators.agents.models import ModelSettings
from operators.agents.probe import Probe
from operators.agents.recorded import request
from populations.events import Certainty, Event, Reserved, Resumed, Settled, Stillborn
from populations.folder import PROBLEM
from populations.kernel import Kernel
from populations.log import EventLog

WAIT_S = 1.0  # for answers, until Ctrl-C is looked at again
Note = Callable[[str], None]


@dataclass
class Told:
    """What came of proposing.

    Attributes:
        ids: of the proposals that were left.
        without: how many of them hold no kernel, but why there is none.
        spent: on models, by this process.
        stopped: why there are fewer than were wanted; None: there are as many.
    """

    ids: list[str] = field(default_factory=list)
    without: int = 0
    spent: Amount = field(default_factory=Amount)
    stopped: str | None = None

    def to_json(self, run: Path) -> dict[str, Any]:
        """As plain data."""
        spent = {"tokens": self.spent.tokens, "usd": self.spent.usd, "seconds": self.spent.seconds}
        told = {"proposals": self.ids, "without": self.without, "spent": spent, "stopped": self.stopped}
        return {"run_dir": str(run), **told}


def propose(
    path: Path,
    wanted: int,
    note: Note,
    speakers: tuple[ModelSettings, ...] = (),
    caps: Caps | None = None,
    name: str | None = None,
) -> Told:
    """Leave proposals for children of a snapshot's kernels in RUN/proposals.

    Args:
        path: the run's folder, with a snapshot in it.
        wanted: how many; each is one answer of a model, or one child of an operator.
        note: tells people a line.
        speakers: models to ask; none: those of the run, and where it has none, operators make the children.
        caps: in USD and tokens, of this process beside those of the run.
        name: of this process; None: one that nobody else has.

    Raises:
        SettingsError, RunError: what, where, what to do.
        KeyboardInterrupt: somebody stopped it; requests that were open stay announced.
    """
    with EventLog.of_snapshot(path) as log:
        settings = checked(log.started().settings["search"], f"settings of run {path}")
        if speakers:
            settings = settings.model_copy(update={"models": speakers})
        with Outbox(path, log.identity(), name) as outbox:
            # Other processes draw other chances from the same snapshot.
            seed = Random(f"{settings.seed}:{outbox.name}").getrandbits(62)
            settings = settings.model_copy(update={"seed": seed})
            search = found(log, settings)
            if (kept := path / PROBLEM).is_file():
                search = replace(search, card=replace(search.card, path=str(kept)))
            proposing = Proposing(search, outbox, caps or Caps(), note)
            return proposing.by_models(wanted) if settings.models else proposing.by_operators(wanted)


class Proposing:
    """One process's proposals.

    Args:
        search: the run as its snapshot has it.
        outbox: takes them.
        caps: of this process.
        note: tells people a line.
    """

    def __init__(self, search: Search, outbox: Outbox, caps: Caps, note: Note) -> None:
        self._search, self._outbox, self._note = search, outbox, note
        self._own = Ledger(Caps(usd=caps.usd, tokens=caps.tokens))
        self._open: dict[str, Parcel] = {}
        self._made: list[Kernel] = []  # by others
        self.told = Told()

    def by_models(self, wanted: int) -> Told:
        """Ask models for so many children, as many at once as they take."""
        settings = self._search.settings
        refuse_unpriced(self._own.caps.usd, _prices(settings.models))
        self._look()
        errands = self._search.course.errands
        errands.apply(Resumed(self._search.state.evaluations))  # models may be well again
        for waited_for in (errands.open, errands.arrived):
            waited_for.clear()  # by the run itself: here they take no place
        if (cap := self._refusal(Amount(1, 1e-9))) is not None:
            self.told.stopped = cap
            return self.told
        opened = models.opened(settings)
        for line in opened.lines:
            self._note(line)
        self._charge(opened.probes)
        calls, delegation = Calls(None, opened.chats), self._search.delegation(device=False)
        try:
            self._converse(wanted, calls, delegation)
        except KeyboardInterrupt:
            for arrival in calls.arrivals():
                self._arrived(arrival, delegation)
            raise
        finally:
            calls.close()
            self.told.spent = self._own.spent
        return self.told

    def by_operators(self, wanted: int) -> Told:
        """Let operators make so many children; none of a source that is known."""
        search = self._search
        self._note(models.ALONE)
        if not len(search.state.archive):
            self.told.stopped = "no kernel of this run is measured: there is none to start from"
            return self.told
        self._look()
        shas = {sha for (sha,) in search.log.query("SELECT sha FROM sources")}
        batch = Batch(known=shas | {kernel.sha for kernel in self._made})
        asking = Asking(
            search.strategy, None, _Paper(), search.state, search.course, search.settings, self._tell,
            self._note,
        )  # fmt: skip
        ask, barren = max(search.state.next_ask, search.strategy.seeds + 1), 0
        while len(self.told.ids) < wanted and barren < search.settings.patience:
            asked = asking.propose(ask, batch)
            ask, barren = ask + 1, barren + 1
            if asked is None or isinstance(asked, Stillborn):
                continue
            (draft, _), barren = asked, 0
            assert draft.proposal is not None
            self._put(self._parcel(draft.operator, draft.parents).holding(draft.proposal))
        if len(self.told.ids) < wanted:
            self.told.stopped = f"{barren} asks in a row led to nothing new"
        return self.told

    def _converse(self, wanted: int, calls: Calls, delegation: Delegation) -> None:
        """Ask and listen until there are as many answers as were wanted, or nothing more can be asked."""
        state, course = self._search.state, self._search.course
        asked, full = 0, None
        while True:
            while asked < wanted:
                free = delegation.free(course, math.inf)
                question = delegation.question(state.next_ask, free, state, course, needed=True)
                full = self._sent(question, calls) if question is not None else None
                if question is None or full is not None:
                    break
                asked += 1
            if not self._open:
                break
            for arrival in calls.arrivals(WAIT_S):  # which cost less than was reserved for them
                self._arrived(arrival, delegation)
        if asked < wanted:
            self.told.stopped = full or self._why(delegation)

    def _sent(self, question: Question, calls: Calls) -> str | None:
        """Announce a request and make it; the cap, where one has no room for it."""
        id = self._outbox.next_id()
        asked = request(turn(id, 1), question.model, question.messages)
        cost = most(asked)
        if (cap := self._refusal(cost)) is not None:
            return cap
        parcel = replace(
            self._parcel(question.operator, question.parents, id),
            model=question.model.name, reserved_tokens=cost.tokens, reserved_usd=cost.usd,
            tokens=cost.tokens, usd=cost.usd, certainty=Certainty.UNKNOWN, asked=asked,
            lessons=question.lessons, untold=question.untold,
        )  # fmt: skip
        self._outbox.announce(parcel)
        self._look()
        if (cap := self._refusal(cost)) is not None:
            self._outbox.withdraw(parcel)
            return cap
        self._tell(parcel.reserved(self._search.state.next_ask))
        self._open[parcel.call] = parcel
        calls.send(asked)
        return None

    def _arrived(self, arrival: Arrival, delegation: Delegation) -> None:
        """Leave the proposal that an answer comes to, or why it comes to none."""
        record, settled = arrival.record, arrival.settled()
        parcel = replace(
            self._open.pop(record.call), tokens=settled.tokens, usd=settled.usd, seconds=settled.seconds,
            certainty=settled.certainty, answer=record,
        )  # fmt: skip
        made = delegation.read(parcel.operator, parcel.ids, record)
        self._put(parcel.without(made) if isinstance(made, str) else parcel.holding(made))
        self._tell(settled)
        self._search.course.errands.arrived.pop(parcel.call)  # its ask ends elsewhere

    def _why(self, delegation: Delegation) -> str:
        """Why no model can be asked any more."""
        errands = self._search.course.errands
        off = ((each.name, errands.off(each.name, each.parallel)) for each in self._search.settings.models)
        reasons = [f"model {name} is asked no more: {why}" for name, why in off if why]
        reasons += [f"{why}; raise its context in the settings" for why in delegation.too_long.values()]
        return "; ".join(reasons) or "no agent has a kernel to start from: judge the proposals first"

    def _look(self) -> None:
        """Take in what other processes left or announced; what is announced counts as spent."""
        search = self._search
        for parcel in self._outbox.others(search.course.errands.used):
            if parcel.source is not None:
                self._made.append(Kernel(parcel.source, parcel.language))
            if parcel.model is None or search.course.ledger.knows(parcel.call):
                continue
            for event in (parcel.reserved(search.state.next_ask), parcel.settled()):
                self._applied(event)
            search.course.errands.arrived.pop(parcel.call, None)

    def _charge(self, probes: Iterable[Probe]) -> None:
        """What it cost to find out whether models are there."""
        for probe in probes:
            spent = probe.spent
            parcel = replace(
                self._parcel(PROBE, ()), model=probe.model, reserved_tokens=spent.tokens,
                reserved_usd=spent.usd or 0.0, tokens=spent.tokens, usd=spent.usd or 0.0,
                seconds=spent.seconds,
                certainty=Certainty.ESTIMATED if spent.estimated else Certainty.COUNTED,
            )  # fmt: skip
            self._outbox.put(parcel)
            self._tell(parcel.reserved(self._search.state.next_ask))
            self._tell(parcel.settled())

    def _parcel(self, operator: str, parents: tuple[int, ...], id: str | None = None) -> Parcel:
        log, language = self._search.log, self._search.language
        named = tuple((parent, log.proposed(parent).source_sha) for parent in parents)
        return Parcel(log.identity(), id or self._outbox.next_id(), operator, named, language=language)

    def _put(self, parcel: Parcel) -> None:
        self._outbox.put(parcel)
        self.told.ids.append(parcel.id)
        self.told.without += parcel.source is None

    def _refusal(self, cost: Amount) -> str | None:
        """The cap that has no room for one more call."""
        if (cap := self._search.course.ledger.refusal(cost)) is not None:
            return f"the run's cap in {cap} has no room for another request"
        if (cap := self._own.refusal(cost)) is not None:
            return f"--{cap} has no room for another request"
        return None

    def _tell(self, event: Event) -> None:
        """A fact of this process's own."""
        if isinstance(event, Reserved | Settled):
            self._own.apply(event)
        self._applied(event)

    def _applied(self, event: Event) -> None:
        self._search.state.apply(event)
        self._search.course.apply(event)


class _Paper:
    """What stands for a device where there is none: every source is admitted, and is its own normal form."""

    def admit(self, kernel: Kernel) -> Admission:
        return Admission(kernel, kernel.sha)


def _prices(speakers: Iterable[ModelSettings]) -> dict[str, object | None]:
    return {each.name: each.price_out if each.priced else None for each in speakers}
