"""An arm of the bandit, what it costs, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from evo.settings import Settings

MEMORY = 1000.0  # asks of the run after which an ask counts 1/e
OWN = 4.0  # what an ask of an arm says of its chance, beside what the average of all arms says
SIZE_PRIOR = 2.0  # gains of the usual size that an arm starts with
COST_PRIOR = 1.0  # asks at the usual cost that an arm starts with
BORN_PRIOR = 4.0  # asks with a child that an arm starts with
ASK_S = 1.0  # seconds of the machine that an ask takes beside the device: building, or finding a twin
ASK_TOKENS, ASK_USD = 100.0, 0.001  # what it counts for where models alone are limited


@dataclass(frozen=True, order=True)
class Arm:
    """An operator, and the model it speaks to ("": it needs none)."""

    operator: str
    model: str = ""


@dataclass(frozen=True)
class Weights:
    """What one unit of each expense is worth, in shares of the run's budgets.

    Attributes:
        ask: of one ask, whether or not it leads to an evaluation.
        tokens, usd: of one token, one USD.
        seconds, device_s: of a second of a model, of the device.
    """

    ask: float = 1.0
    tokens: float = 0.0
    usd: float = 0.0
    seconds: float = 0.0
    device_s: float = 0.0

    @classmethod
    def of(cls, settings: Settings, parallel: int = 1) -> Weights:
        """The weights that the budgets give: what nothing limits costs nothing.

        Args:
            settings: the budgets.
            parallel: model requests that may be open at once; they share the wall time.
        """
        second = 1.0 / (60.0 * settings.minutes) if settings.minutes else 0.0
        ask = (1.0 / settings.evaluations if settings.evaluations else 0.0) + ASK_S * second
        tokens, usd = (1.0 / cap if cap else 0.0 for cap in (settings.tokens, settings.usd))
        least = ASK_TOKENS * tokens + ASK_USD * usd  # so that nothing is free
        return cls(ask or least or 1.0, tokens, usd, second / parallel, second)


@dataclass(frozen=True)
class Usual:
    """What an average arm is like: asks without a gain for each with one, size of a gain, cost of an ask."""

    missed: float
    size: float
    cost: float


@dataclass
class Record:
    """What is known of an arm; all sums count an ask less the older it is."""

    asks: float = 0.0
    stillborn: float = 0.0
    gained: float = 0.0  # asks whose child gained
    gain: float = 0.0
    cost: float = 0.0
    at: int = 0  # the ask up to which the sums have aged

    def aged(self, now: int) -> Record:
        """Itself, as of this ask."""
        if now > self.at:
            kept = still_counted(now - self.at)
            self.asks *= kept
            self.stillborn *= kept
            self.gained *= kept
            self.gain *= kept
            self.cost *= kept
            self.at = now
        return self

    def add(
        self,
        asks: float = 0.0,
        stillborn: float = 0.0,
        gained: float = 0.0,
        gain: float = 0.0,
        cost: float = 0.0,
    ) -> None:
        """Add to the sums."""
        self.asks += asks
        self.stillborn += stillborn
        self.gained = max(0.0, self.gained + gained)
        self.gain = max(0.0, self.gain + gain)
        self.cost += cost

    def drawn(self, usual: Usual, rng: Random) -> float:
        """A gain per cost that the arm may well have."""
        # As if it had gained once in as many asks as one needs for a gain on average.
        missed = usual.missed + OWN * max(0.0, self.asks - self.gained)
        chance = rng.betavariate(1.0 + OWN * self.gained, max(missed, 1e-9))
        size = (SIZE_PRIOR * usual.size + self.gain) / (SIZE_PRIOR + self.gained)
        # Where most children are known already, little is left to find.
        fresh = 1.0 - self.stillborn / (self.asks + BORN_PRIOR)
        return fresh * chance * size * (self.asks + COST_PRIOR) / (self.cost + COST_PRIOR * usual.cost)


def still_counted(asks: int) -> float:
    """What an ask counts after so many further ones."""
    return float((1.0 - 1.0 / MEMORY) ** asks)
