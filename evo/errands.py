"""What models were asked for and what came of it: a fold over events, so a resumed run knows it too.

An *errand* is one question to a model on behalf of an agent. It begins with ``Reserved``; with ``Settled``
its answer is in RUN/calls and has *arrived*; the ask that uses it ends it. *Counsel*, whose answer is no
kernel, needs no ask: it ends as ``Diagnosed`` or ``Reflected``. An errand whose outcome nobody knows is over,
and may be sent again once (``evo.ledger``).
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from statistics import median

from evo.calls import number_of, root_of
from operators.agents.diagnose import Diagnose
from operators.agents.explore import TRY, Explore
from operators.agents.models import ModelSettings
from operators.agents.reflect import Reflect
from operators.agents.writers import Draft, Repair
from populations.events import (
    Certainty,
    Diagnosed,
    Event,
    Judged,
    Proposed,
    Reflected,
    Reserved,
    Resumed,
    Settled,
    Stillborn,
)
from populations.verdict import Outcome

PROBE = "probe"  # the operator of the call that tells whether a model is there
COUNSEL = (Diagnose.name, Reflect.name)  # agents whose answer is no kernel
IN_A_ROW = 8  # requests that fail one after the other, beyond those under way, until a model is left alone
RECENT = 16  # answers that tell how long one takes
BACKLOG = 64  # failed kernels that are kept for repair
REFUSALS = 8  # refused sources that are kept until their authors can be told, the latest ones


@dataclass(frozen=True)
class Errand:
    """One question to a model, or its answer; see ``Reserved``."""

    call: str
    operator: str
    model: str
    parents: tuple[int, ...]
    lessons: tuple[int, ...] = ()
    untold: tuple[int, ...] = ()
    mends: str | None = None


@dataclass
class Try:
    """A kernel that a conversation tried: its id, or why there is none.

    ``device_s`` is what its verdict took; None: there is none yet.
    """

    id: int | None
    reason: str = ""
    device_s: float | None = None


@dataclass
class Talk:
    """A conversation in which a model tries kernels before it hands one in; its errand is the latest turn's.

    Attributes:
        errand: that turn.
        tried: the kernels that it tried, in order.
    """

    errand: Errand
    tried: list[Try] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """How many there were."""
        return number_of(self.errand.call)

    @property
    def judging(self) -> int | None:
        """The kernel that waits for its verdict."""
        return self.tried[-1].id if self.tried and self.tried[-1].device_s is None else None


class Errands:
    """What is under way, what arrived, and what is left to do.

    Attributes:
        open: errands whose answers are not there, by call.
        talks: conversations that go on, by their names, the oldest first.
        arrived: those whose answers wait for an ask, oldest first.
        counsel: those whose answers are no kernels and wait to be read.
        refused: those whose source admission refused and why, oldest first; their authors do not know yet.
        begun: how many calls there were, probes included.
        drafts: first kernels that were asked for, without failures.
        lost: errands whose outcome nobody knows, by call.
        used: calls that nothing more comes of: an ask ended with their answer, or it was no question.
    """

    def __init__(self) -> None:
        self.open: dict[str, Errand] = {}
        self.talks: dict[str, Talk] = {}
        self.arrived: dict[str, Errand] = {}
        self.counsel: dict[str, Errand] = {}
        self.refused: dict[str, tuple[Errand, str]] = {}
        self.lost: dict[str, Errand] = {}
        self.used: set[str] = set()
        self.begun = 0
        self.drafts = 0
        self._born: dict[int, Proposed] = {}  # of agents, or to start from, and not judged yet
        self._broken: dict[int, int] = {}  # failed kernel that may be repaired → the one it began with
        self._repairs: Counter[int] = Counter()  # attempts, by the kernel that a chain began with
        self._began: dict[int, int] = {}  # a repaired child → that kernel
        self._failures: Counter[str] = Counter()  # in a row, by model
        self._took: dict[str, deque[float]] = {}  # seconds, of late, by model
        self._latest: dict[str, str] = {}  # kind of failure, by model

    def apply(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case Reserved():
                self.begun += 1
                if event.operator != PROBE:
                    what = (event.parents, event.lessons, event.untold, event.mends)
                    self._begin(Errand(event.call, event.operator, event.model, *what))
            case Settled():
                self._settle(event)
            case Diagnosed() | Reflected():
                self.counsel.pop(event.call, None)
            case Proposed() | Stillborn():
                if event.call is not None:
                    self.used.add(event.call)
                    self._use(self.arrived.pop(event.call, None), event)
                    self._turn(root_of(event.call), event)
                answered = event.call is not None and event.model is not None
                if isinstance(event, Proposed) and (answered or not event.parents):
                    self._born[event.id] = event
            case Judged(id, verdict) if id in self._born:
                born = self._born.pop(id)
                self._judge(born, verdict.status)
                talk = self.talks.get(root_of(born.call or ""))
                if talk is not None and talk.judging == id:
                    talk.tried[-1].device_s = verdict.device_s
            case Resumed():  # somebody may have mended what was wrong
                self._failures.clear()

    @property
    def children(self) -> int:
        """How many errands may still come to a kernel."""
        quiet = sum(talk.errand.call not in self.open for talk in self.talks.values())
        return (
            len(self.arrived) + quiet + sum(errand.operator not in COUNSEL for errand in self.open.values())
        )

    def repairable(self) -> list[int]:
        """Failed kernels of agents, or to start from, newest first, that are worth another attempt; none is
        under way for them."""
        under_way = {
            parent
            for errand in (*self.open.values(), *self.arrived.values())
            if errand.operator == Repair.name
            for parent in errand.parents
        }
        return [id for id in reversed(self._broken) if id not in under_way]

    def may_talk(self, model: ModelSettings) -> bool:
        """Whether a model may begin one more conversation."""
        under_way = sum(talk.errand.model == model.name for talk in self.talks.values())
        return model.tools and under_way < model.parallel

    def off(self, model: str, parallel: int) -> str | None:
        """Why a model is left alone; None: it is not.

        Args:
            model: its name.
            parallel: requests that may be under way at once, which one fault may end together.
        """
        if (failed := self._failures[model]) < IN_A_ROW + parallel:
            return None
        return f"{failed} requests in a row failed, the last one as {self._latest[model]}"

    def usual_s(self, model: str) -> float:
        """Seconds that an answer of this model takes, as of late; 0 where none came yet."""
        took = self._took.get(model)
        return median(took) if took else 0.0

    def _begin(self, errand: Errand) -> None:
        self.open[errand.call] = errand
        if errand.operator == Explore.name:
            self.talks.setdefault(root_of(errand.call), Talk(errand)).errand = errand
        self.drafts += _is_draft(errand)
        if errand.mends is not None:
            self.refused.pop(errand.mends, None)
        elif errand.operator == Repair.name:
            self._attempt(errand.parents[0])

    def _use(self, errand: Errand | None, end: Proposed | Stillborn) -> None:
        """An ask used an answer; what was refused twice is left."""
        if errand is not None and isinstance(end, Stillborn) and end.refused and errand.mends is None:
            self.refused[errand.call] = errand, end.reason
            while len(self.refused) > REFUSALS:
                del self.refused[next(iter(self.refused))]

    def _turn(self, root: str, end: Proposed | Stillborn) -> None:
        """An ask tried a kernel for a conversation, or ended it."""
        talk = self.talks.get(root)
        if talk is None:
            return
        if end.operator != TRY:
            del self.talks[root]
        elif isinstance(end, Proposed):
            talk.tried.append(Try(end.id))
        else:
            talk.tried.append(Try(None, end.reason))

    def _settle(self, event: Settled) -> None:
        errand = self.open.pop(event.call, None)
        if errand is None:
            self.used.add(event.call)  # a probe
            return
        if event.certainty is Certainty.UNKNOWN:
            self.drafts -= _is_draft(errand)
            talk = self.talks.pop(root_of(errand.call), None)
            if talk is None or talk.turns == 1:  # else what came before would have to be said again
                self.lost[errand.call] = errand
            return
        if errand.operator != Explore.name:
            (self.counsel if errand.operator in COUNSEL else self.arrived)[errand.call] = errand
        self._took.setdefault(errand.model, deque(maxlen=RECENT)).append(event.seconds)
        if event.failure is None:
            self._failures[errand.model] = 0
        else:
            self._failures[errand.model] += 1
            self._latest[errand.model] = event.failure
            self.drafts -= _is_draft(errand)

    def _attempt(self, id: int) -> None:
        """One more repair of a chain; the last one that it is worth takes the kernel off the list."""
        first = self._broken.get(id, id)
        self._repairs[first] += 1
        if self._repairs[first] >= Repair.attempts:
            self._broken.pop(id, None)

    def _judge(self, born: Proposed, status: Outcome) -> None:
        first = born.id
        if born.operator == Repair.name:
            parent = born.parents[0]
            first = self._began.get(parent, parent)
            self._broken.pop(parent, None)  # its child is nearer, or the end of it
            self._began[born.id] = first
        if status < Outcome.LOWERED and self._repairs[first] < Repair.attempts:
            self._broken[born.id] = first
            while len(self._broken) > BACKLOG:
                del self._broken[next(iter(self._broken))]


def _is_draft(errand: Errand) -> bool:
    """Whether it asks for one more first kernel; one that is mended was counted before."""
    return errand.operator == Draft.name and errand.mends is None
