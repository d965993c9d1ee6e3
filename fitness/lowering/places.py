"""Places for children at work: who began to lower first gets the next one, and only who can go on wakes up.

Were they given to whichever thread comes first, all sources under way would end late, and a search that
settles them in order would wait for the oldest while younger ones compile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class Asker:
    """A thread that has children at work or wants to.

    Attributes:
        turn: the lower, the earlier it is served.
        changed: told of whatever concerns it.
        wants: places that it waits for; more than it gets is of no harm.
        given: places that it has got and not yet used.
        ended: numbers and statuses of its children that have ended.
    """

    turn: int
    changed: threading.Condition
    wants: int = 0
    given: int = 0
    ended: list[tuple[int, int]] = field(default_factory=list)


class Places:
    """So many children may work at once, over all threads.

    Args:
        count: of places.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._askers: list[Asker] = []
        self._children: dict[int, Asker] = {}
        self._gone = False

    @property
    def waiting(self) -> int:
        """How many would begin a child and have no place."""
        with self._lock:
            return sum(asker.wants > 0 for asker in self._askers)

    @contextmanager
    def asker(self, turn: int) -> Iterator[Asker]:
        """One more that asks; what it did not use is free again at the end."""
        asker = Asker(turn, threading.Condition(self._lock))
        with self._lock:
            self._askers.append(asker)
            self._askers.sort(key=lambda one: one.turn)
        try:
            yield asker
        finally:
            with self._lock:
                self._askers.remove(asker)
                self._take_back(asker)

    def next(
        self, asker: Asker, wants: int, patience: float | None
    ) -> tuple[int, list[tuple[int, int]]] | None:
        """Waits until a child of the asker's has ended or it has a place.

        Args:
            asker: who waits.
            wants: places that it could use; those given before and not used go to others.
            patience: seconds; None: for ever, as a place comes free in the end.

        Returns:
            How many children it may begin now, and numbers and statuses of those that have ended. None:
            nothing happened for so long, or there are no more places at all.
        """
        with self._lock:
            asker.wants = wants
            self._take_back(asker)
            asker.changed.wait_for(lambda: self._gone or asker.ended or asker.given, patience)
            if self._gone or not (asker.ended or asker.given):
                return None
            asker.wants = 0
            ended, asker.ended = asker.ended, []
            return asker.given, ended

    def begun(self, asker: Asker, number: int) -> None:
        """A place is in use: by the child of this number."""
        with self._lock:
            asker.given -= 1
            self._children[number] = asker

    def ended(self, number: int, status: int) -> None:
        """That child has ended."""
        with self._lock:
            asker = self._children.pop(number)
            asker.ended.append((number, status))
            asker.changed.notify()
            self._free += 1
            self._give()

    def close(self) -> None:
        """No child will end any more: all who wait are told."""
        with self._lock:
            self._gone = True
            for asker in self._askers:
                asker.changed.notify()

    def _take_back(self, asker: Asker) -> None:
        self._free += asker.given
        asker.given = 0
        self._give()

    def _give(self) -> None:
        """Free places to those who wait, the oldest first."""
        for asker in self._askers:
            given = min(self._free, asker.wants)
            if given:
                self._free -= given
                asker.given += given
                asker.wants -= given
                asker.changed.notify()
