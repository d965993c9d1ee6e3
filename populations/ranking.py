"""Where every measured kernel stands by its latest verdict, in a few numbers each."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop

from populations.archive import Standing
from populations.verdict import Outcome, Verdict


class Ranking:
    """All measured kernels of a run, by their latest verdicts; those without a rank are not in it."""

    def __init__(self) -> None:
        self._ranks: dict[int, float] = {}
        self._events: dict[int, int] = {}
        self._general: set[int] = set()

    def note(self, id: int, verdict: Verdict, event: int) -> None:
        """Take in a kernel's latest verdict, and the number of the event that brought it."""
        self._ranks.pop(id, None)
        self._events.pop(id, None)
        self._general.discard(id)
        if verdict.status is Outcome.MEASURED and verdict.rank is not None:
            self._ranks[id] = verdict.rank
            self._events[id] = event
            if verdict.general:
                self._general.add(id)

    def rank(self, id: int) -> float | None:
        """A kernel's rank; None: it has none."""
        return self._ranks.get(id)

    def standing(self, id: int) -> Standing | None:
        """Where it stands, as ``populations.archive.standing`` says it; None: it has no rank."""
        return (-self._ranks[id], id not in self._general, id) if id in self._ranks else None

    def event(self, id: int) -> int:
        """The event that gave a kernel its rank."""
        return self._events[id]

    def best_first(self) -> Iterator[int]:
        """All ids; taking only a few costs little."""
        heap = [(-rank, id not in self._general, id) for id, rank in self._ranks.items()]
        heapify(heap)
        while heap:
            yield heappop(heap)[-1]

    def __len__(self) -> int:
        return len(self._ranks)
