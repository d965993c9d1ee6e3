"""How a run goes, said on standard error: a live panel on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table

from evo import saying
from evo.device import CALIBRATING
from populations.events import Calibrated, Event, Judged, Promoted, Stopped
from populations.individual import Individual
from populations.state import State
from populations.verdict import Outcome

EVERY_S = 10.0  # between lines where there is no terminal


class Silent:
    """Says nothing."""

    def told(self, event: Event, state: State) -> None:
        """Nothing."""

    def doing(self, what: str) -> None:
        """Nothing."""

    def note(self, line: str) -> None:
        """Nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing."""


class Lines:
    """A line when the baselines are known, at every new best kernel, and every ten seconds."""

    def __init__(self) -> None:
        self._said = time.monotonic()
        self._best: int | None = None

    def told(self, event: Event, state: State) -> None:
        """Say it, if it is time or worth it."""
        match event:
            case Calibrated(calibration):
                assert state.started is not None
                noise = calibration.noise_floor(state.started.card["policy"])
                self._say(f"baselines measured; {saying.noise_floor(noise)}")
            case Promoted():
                best = state.best
                if best is not None and best.id != self._best:
                    self._best = best.id
                    self._say(f"new best: {described(best)}")
            case Judged() if time.monotonic() - self._said > EVERY_S:
                self._say(f"{saying.judged(state.evaluations)}; best {described(state.best)}")
            case Stopped(why):
                self._say(f"{saying.judged(state.evaluations)}; stopped: {why}")

    def doing(self, what: str) -> None:
        """Say it of what takes long; the rest is too fast for lines."""
        if what == CALIBRATING:
            self._say(what)

    def note(self, line: str) -> None:
        """Say it."""
        self._say(line)

    def _say(self, line: str) -> None:
        saying.aside(line)
        self._said = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to clean up."""


class Panel:
    """A live panel: kernels by outcome, best so far with its interval, what is left, what happens now."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str]] = []
        self._drawn_at = 0.0
        self._end: float | None = None  # of the time budget
        self._doing, self._since = "opening the device", time.monotonic()
        self._live = Live(get_renderable=self._drawn, console=Console(stderr=True), transient=True)

    def told(self, event: Event, state: State) -> None:
        """Keep what the next drawing shows; drawing has its own thread, so it never looks at the state."""
        now = time.monotonic()
        if now - self._drawn_at < 0.1 and not isinstance(event, Promoted | Stopped):
            return
        assert state.started is not None
        self._drawn_at = now
        search = state.started.settings["search"]
        self._end = None if search["minutes"] is None else now + search["minutes"] * 60 - state.wall_s
        self._rows = [
            ("problem", f"{state.started.card['name']} on {state.started.target}"),
            ("kernels", _counts(state)),
            ("best so far", described(state.best)),
        ]
        if state.tokens:
            self._rows.append(("models", f"{state.tokens} tokens, {state.usd:.4f} USD"))
        if search["evaluations"] is not None:
            self._rows.append(("kernels left", str(max(0, search["evaluations"] - state.evaluations))))

    def doing(self, what: str) -> None:
        """Keep it for the next drawing."""
        self._doing, self._since = what, time.monotonic()

    def note(self, line: str) -> None:
        """Say it above the panel."""
        with suppress(OSError):
            self._live.console.print(line, markup=False, highlight=False)

    def __enter__(self) -> Panel:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the terminal is gone
            self._live.stop()

    def _drawn(self) -> Table:
        grid = Table.grid(padding=(0, 2))
        for row in self._rows:
            grid.add_row(*row)
        now = time.monotonic()
        if self._end is not None:
            left = max(0, int(self._end - now))
            grid.add_row("time left", f"{left // 60}:{left % 60:02d}")
        grid.add_row("now", f"{self._doing}, {now - self._since:.0f} s")
        return grid


def watcher(say: bool = True) -> Silent | Lines | Panel:
    """Whoever fits: nobody, lines, or a panel where standard error is a terminal."""
    if not say:
        return Silent()
    return Panel() if sys.stderr.isatty() else Lines()


def described(one: Individual | None) -> str:
    """A kernel's speed in words, with its interval where it was measured for a claim."""
    verdict = one.verdict if one is not None else None
    if one is None or verdict is None or verdict.speedup is None:
        return "none yet"
    claim = "not confirmed yet"
    if verdict.fitness is not None:
        claim = f"at least {math.exp(verdict.fitness):.2f}x with 95 % confidence"
    return f"kernel {one.id} ({one.operator}): {verdict.speedup:.2f}x over the stronger baseline, {claim}"


def _counts(state: State) -> str:
    counts = [
        f"{state.outcomes[outcome]} {outcome}"
        for outcome in reversed(list(Outcome))
        if state.outcomes[outcome]
    ]
    return ", ".join([f"{state.evaluations} judged", *counts, f"{state.stillborn} stillborn"])
