"""What a run spends on models, and its caps: a fold over events, so a resumed run knows to the cent.

A call is *reserved* before it is made, at the most that it may cost, and *settled* once it ended, at what it
did cost. Whoever wants to make a call asks ``refusal`` first: then spent and reserved together stay within
the caps, if no call costs more than its reservation. A call that was open when the process ended has an
unknown outcome; it is charged at its reservation (``unknown``) and may be made again once (``may_repeat``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evo.settings import Settings, SettingsError
from populations.events import Certainty, Event, Judged, Proposed, Reserved, Settled

EVALUATIONS, MINUTES, USD, TOKENS = "evaluations", "minutes", "usd", "tokens"


@dataclass(frozen=True)
class Amount:
    """Tokens, US dollars, and seconds that a model took."""

    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.usd + other.usd, self.seconds + other.seconds)


@dataclass(frozen=True)
class Caps:
    """What a run may spend; None: no such limit. The settings of the same names."""

    evaluations: int | None = None
    minutes: float | None = None
    usd: float | None = None
    tokens: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> Caps:
        """Those that the settings name."""
        return cls(settings.evaluations, settings.minutes, settings.usd, settings.tokens)


@dataclass
class Line:
    """What one operator spent on one model.

    Attributes:
        calls: that were settled.
        spent: on them.
        estimated, unknown: how many of them were not counted by the server.
    """

    calls: int = 0
    spent: Amount = Amount()
    estimated: int = 0
    unknown: int = 0


class Ledger:
    """Caps, and what was spent and reserved after the events so far; constant time per event.

    Attributes:
        caps: what may be spent.
        evaluations: kernels judged.
        spent: in all, calls that are open not included.
        open: calls that are reserved and not settled, by name.
        lines: what was spent by (model, operator); a proposal that names no model has "" for one.
    """

    def __init__(self, caps: Caps | None = None) -> None:
        self.caps = caps or Caps()
        self.evaluations = 0
        self.spent = Amount()
        self.open: dict[str, Reserved] = {}
        self.lines: dict[tuple[str, str], Line] = {}
        self._calls: set[str] = set()  # ever reserved
        self._repeats: set[str] = set()  # calls that were made again, or are such a repetition

    def apply(self, event: Event) -> None:
        """Take in an event.

        Raises:
            ValueError: a call is reserved or settled twice, or settled without having been reserved.
        """
        match event:
            case Reserved():
                self._reserve(event)
            case Settled():
                self._settle(event)
            case Proposed(model=None) if event.tokens or event.usd or event.seconds:
                # A user's own operator, whose calls are not seen.
                self._charge("", event.operator, Amount(event.tokens, event.usd, event.seconds))
            case Judged():
                self.evaluations += 1

    @property
    def reserved(self) -> Amount:
        """For the calls that are open."""
        return sum((_amount(call) for call in self.open.values()), Amount())

    def refusal(self, most: Amount) -> str | None:
        """The cap that one more call might break; None: there is room for it.

        Args:
            most: what the call may cost.
        """
        return self._broken(self.spent + self.reserved + most)

    def reached(self, wall_s: float = 0.0, call: Amount | None = None) -> str | None:
        """The cap at which a run has to stop; None: it may go on.

        Args:
            wall_s: seconds that the run took, and will take to close.
            call: what the next call may cost; None: none need be made. Where there is no room for it even
                if nothing were reserved, its cap is reached.
        """
        caps = self.caps
        if caps.evaluations is not None and self.evaluations >= caps.evaluations:
            return EVALUATIONS
        if caps.usd is not None and self.spent.usd >= caps.usd:
            return USD
        if caps.tokens is not None and self.spent.tokens >= caps.tokens:
            return TOKENS
        if call is not None and (cap := self._broken(self.spent + call)) is not None:
            return cap
        return MINUTES if caps.minutes is not None and wall_s >= 60.0 * caps.minutes else None

    def unknown(self) -> list[Settled]:
        """What settles the calls that were open when the process ended; a process that resumes logs it."""
        return [
            Settled(call.call, call.tokens, call.usd, certainty=Certainty.UNKNOWN)
            for call in self.open.values()
        ]

    def knows(self, call: str) -> bool:
        """Whether a call of this name was reserved, be it open or not."""
        return call in self._calls

    def may_repeat(self, call: str) -> bool:
        """Whether a call with an unknown outcome may be made again: once, and never a repetition."""
        return call in self._calls and call not in self.open and call not in self._repeats

    def _broken(self, committed: Amount) -> str | None:
        if self.caps.usd is not None and committed.usd > self.caps.usd:
            return USD
        return TOKENS if self.caps.tokens is not None and committed.tokens > self.caps.tokens else None

    def _reserve(self, event: Reserved) -> None:
        if event.call in self._calls:
            raise ValueError(f"call {event.call} was reserved before")
        if event.again is not None:
            if not self.may_repeat(event.again):
                raise ValueError(f"call {event.again} has not ended, was made again, or is a repetition")
            self._repeats |= {event.again, event.call}
        self.open[event.call] = event
        self._calls.add(event.call)

    def _settle(self, event: Settled) -> None:
        if (call := self.open.pop(event.call, None)) is None:
            raise ValueError(f"call {event.call} was settled before, or never reserved")
        self._charge(
            call.model, call.operator, Amount(event.tokens, event.usd, event.seconds), event.certainty
        )

    def _charge(
        self, model: str, operator: str, amount: Amount, certainty: Certainty = Certainty.COUNTED
    ) -> None:
        self.spent += amount
        line = self.lines.setdefault((model, operator), Line())
        line.calls += 1
        line.spent += amount
        line.estimated += certainty is Certainty.ESTIMATED
        line.unknown += certainty is Certainty.UNKNOWN


def refuse_unpriced(usd: float | None, prices: Mapping[str, object | None]) -> None:
    """A cap in US dollars needs the price of every model.

    Args:
        usd: the cap; None: there is none.
        prices: by model; None: it is not known.

    Raises:
        SettingsError: a model has no price.
    """
    lacking = [model for model, price in prices.items() if price is None]
    if usd is not None and lacking:
        raise SettingsError(
            f"usd = {usd:g}: model {lacking[0]!r} has no price, so nobody can tell when it is spent; "
            "give its price in the settings (0 where it is free), or cap tokens instead"
        )


def _amount(call: Reserved) -> Amount:
    return Amount(call.tokens, call.usd)
