"""The seam to whoever watches a run go by."""

from __future__ import annotations

from typing import Protocol

from populations.events import Event
from populations.state import State


class Watcher(Protocol):
    """Whoever wants to see a run go by: a progress display, a test."""

    def told(self, event: Event, state: State) -> None:
        """An event was logged and applied."""

    def doing(self, what: str) -> None:
        """What happens now, in a few words."""

    def note(self, line: str) -> None:
        """Something that people should know, in a line."""
