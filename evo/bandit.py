"""Which operator is asked next: the one whose children gain most for what they cost, as far as is known.

An *arm* is an operator with the model it speaks to. What is known of an arm follows from the events: its
asks, the gains that its children made (``evo.credit``), and its cost in shares of the run's budgets. Each ask
draws, for every arm, a chance to gain from what those numbers leave open, and tries the arms in the order of
drawn gain over cost: arms that are known to be poor are seldom drawn high, arms of which little is known
often are. This is Thompson sampling of a ratio, as for budgeted bandits (Xia, Li, Qin, Yu and Liu 2015). Only
the chance is drawn; size and cost are means, for drawing them as well costs more than it finds out. Old asks
count less and less, because what an operator can still gain changes as the population does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from evo.arms import Arm, Record, Usual, Weights, still_counted
from evo.credit import Standings
from operators.agents.explore import TRY, Explore
from populations.events import Event, Judged, Promoted, Proposed, Reserved, Settled, Stillborn

EXPLORED = 0.05  # share of asks that choose without regard to gains: credit is not all that matters
RATE_PRIOR = 4.0  # before anything is known, one ask in so many is thought to gain


@dataclass(frozen=True)
class _Birth:
    """A child whose gain is known, or will be."""

    arm: Arm | None  # None: nobody chose it
    parents: tuple[int, ...]
    at: int
    bar: float | None = None
    gain: float = 0.0


class Bandit:
    """What is known of the arms: a fold over events, each in constant time but for a heap's logarithm.

    Args:
        weights: what expenses are worth.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights or Weights()
        self._now = 0  # asks that ended
        self._arms: dict[Arm, Record] = {}
        self._all = Record()
        self._standings = Standings()
        self._births: dict[int, _Birth] = {}  # waiting, or measured
        self._calls: dict[str, Arm] = {}  # that are open

    def apply(self, event: Event, chosen: bool = True) -> None:
        """Take in an event.

        Args:
            event: the next one.
            chosen: whether the ask that it ends went where the bandit said; others (a starting kernel, a step
                of the tuner) say nothing of an arm.
        """
        weights = self._weights
        match event:
            case Proposed():
                arm = self._asked(event.operator, event.model) if chosen else None
                self._births[event.id] = _Birth(arm, event.parents, self._now)
                if event.model is None:  # what a model costs is told by its calls
                    spent = weights.tokens * event.tokens + weights.usd * event.usd
                    self._count(arm, cost=spent + weights.seconds * event.seconds)
            case Stillborn() if chosen:
                self._count(self._asked(event.operator, event.model), stillborn=1.0)
            case Reserved():
                self._calls[event.call] = Arm(event.operator, event.model)
            case Settled():
                spent = weights.tokens * event.tokens + weights.usd * event.usd
                self._count(self._calls.pop(event.call), cost=spent + weights.seconds * event.seconds)
            case Judged(id, verdict):
                self._count(self._births[id].arm, cost=weights.device_s * verdict.device_s)
                parents = self._births[id].parents
                bar = self._standings.bar(parents)
                if (now := self._standings.note(id, verdict, parents)) is None:
                    del self._births[id]
                else:
                    self._credit(id, now.low, bar)
            case Promoted(id, verdict):
                birth = self._births.get(id)
                now = self._standings.note(id, verdict, birth.parents if birth else ())
                if birth is not None:
                    bar = self._standings.ancestor(birth.parents)
                    self._credit(id, now.low if now else None, birth.bar if bar is None else bar)

    def order(self, arms: Sequence[Arm], rng: Random, weights: Sequence[float] | None = None) -> list[int]:
        """The arms to try one after the other until one applies, as positions in ``arms``.

        Args:
            arms: those there are.
            rng: the only source of chance; the same state and generator give the same order.
            weights: the user's, which multiply what is drawn; None: all 1.
        """
        worth = weights or [1.0] * len(arms)
        if rng.random() < EXPLORED:
            return shuffled(worth, rng)
        usual = self._usual()
        drawn = [weight * self._known(arm).drawn(usual, rng) for arm, weight in zip(arms, worth, strict=True)]
        return sorted(range(len(arms)), key=lambda n: (-drawn[n], n))

    def _known(self, arm: Arm) -> Record:
        record = self._arms.get(arm)
        return Record() if record is None else record.aged(self._now)

    def _usual(self) -> Usual:
        of = self._all.aged(self._now)
        rate = (of.gained + 1.0) / (of.asks + RATE_PRIOR)
        size = of.gain / of.gained if of.gained > 0 else 1.0
        return Usual(1.0 / rate - 1.0, size, of.cost / of.asks if of.cost > 0 and of.asks > 0 else 1.0)

    def _asked(self, operator: str, model: str | None) -> Arm:
        arm = Arm(Explore.name if operator == TRY else operator, model or "")
        self._now += 1
        self._count(arm, asks=1.0, cost=self._weights.ask)
        return arm

    def _credit(self, id: int, low: float | None, bar: float | None) -> None:
        """What a child gained by its latest verdict, in place of what an earlier one said."""
        birth = self._births[id]
        gain = max(0.0, low - bar) if low is not None and bar is not None else 0.0
        kept = still_counted(self._now - birth.at)
        gained = float(gain > 0) - float(birth.gain > 0)
        self._count(birth.arm, gained=kept * gained, gain=kept * (gain - birth.gain))
        self._births[id] = _Birth(birth.arm, birth.parents, birth.at, bar, gain)

    def _count(self, arm: Arm | None, **more: float) -> None:
        """Add to the sums of an arm, and of all."""
        if arm is None:
            return
        for record in (self._arms.setdefault(arm, Record()), self._all):
            record.aged(self._now).add(**more)


def shuffled(weights: Sequence[float], rng: Random) -> list[int]:
    """Positions in a random order, those with larger weights sooner."""
    # Efraimidis and Spirakis 2006: sorting by u**(1/w) is weighted drawing without replacement.
    drawn = [rng.random() ** (1.0 / max(weight, 1e-9)) for weight in weights]
    return sorted(range(len(weights)), key=lambda n: (-drawn[n], n))
