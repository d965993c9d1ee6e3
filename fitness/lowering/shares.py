"""How the jobs of one source are shared out among children, and what is left to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import ceil
from typing import Generic, TypeVar

from fitness.lowering.jobs import Job

Answer = TypeVar("Answer")


class Shares(Generic[Answer]):
    """Jobs in order, some waiting, some with answers.

    Attributes:
        jobs: all of them.
        answers: to each; None: it has none yet, or its answer would make no difference.
        waiting: indices of those that no child is at, in order.

    Args:
        jobs: what to do.
        most: jobs that one child does at most, one after another.
    """

    def __init__(self, jobs: Sequence[Job], most: int) -> None:
        self.jobs = jobs
        self.answers: list[Answer | None] = [None] * len(jobs)
        self.waiting = list(range(len(jobs)))
        self._most = most
        self._end = len(jobs)  # nothing from here on makes a difference
        self._alone: set[int] = set()

    def take(self, places: int) -> Iterator[list[int]]:
        """What children of ``places`` get: all is split evenly, and what does not fit waits on."""
        size = min(self._most, ceil(len(self.waiting) / places)) if places else 0
        while places and self.waiting:
            first = self.waiting[0]
            fit = [index for index in self.waiting if self._together(first, index)]
            share = fit[:size]
            self.waiting = [index for index in self.waiting if index not in share]
            places -= 1
            yield share

    def answer(self, index: int, answer: Answer, *, last: bool) -> None:
        """One is done; where it is the ``last``, none behind it is needed."""
        self.answers[index] = answer
        if last:
            self._end = min(self._end, index)
            self.again([])

    def again(self, indices: Collection[int], *, alone: int | None = None) -> None:
        """These were not done; ``alone``: the one of them that wants a child for itself."""
        self.waiting = sorted(index for index in {*self.waiting, *indices} if index < self._end)
        if alone is not None:
            self._alone.add(alone)

    def _together(self, first: int, other: int) -> bool:
        if first == other:
            return True
        return self.jobs[first].scratch == self.jobs[other].scratch and not {first, other} & self._alone
