"""Jobs laid out for children to take: whichever is free takes the next, so that none waits behind a slow one.

A job is a file in a folder of its own; the child that takes it gives the file a name with the child's number,
which only one can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from fitness.lowering.jobs import AGAIN, Job, job_file, taken_file

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Offer:
    """What one child may take: jobs by their indices, all below one ``scratch``, as files of this name."""

    scratch: Path
    indices: list[int]
    file: str = job_file


class Offers(Generic[Answer]):
    """The jobs of one source.

    Attributes:
        jobs: all of them.
        answers: to each; None: it has none yet, or its answer would make no difference.

    Args:
        jobs: laid out in their folders, which need not be there.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.answers: list[Answer | None] = [None] * len(jobs)
        self._end = len(jobs)  # nothing from here on makes a difference
        self._again: list[int] = []
        self._twice: set[int] = set()
        for job in jobs:
            job.folder.mkdir(exist_ok=True)
            (job.folder / job_file).write_bytes(job.text)

    def wanted(self, starting: Sequence[Offer]) -> list[Offer]:
        """What further children would be offered, one each.

        Args:
            starting: offers of children that have taken nothing yet.
        """
        coming = Counter(offer.scratch for offer in starting if offer.file == job_file)
        waiting = self._waiting()
        found = [Offer(self.jobs[index].scratch, [index], AGAIN) for index in self._again]
        for index in waiting:
            scratch = self.jobs[index].scratch
            if coming[scratch]:
                coming[scratch] -= 1
            else:
                found.append(Offer(scratch, [one for one in waiting if self.jobs[one].scratch == scratch]))
        return found

    def begin(self, offer: Offer) -> None:
        """A child gets it."""
        if offer.file == AGAIN:
            (index,) = offer.indices
            self._again.remove(index)
            (self.jobs[index].folder / AGAIN).write_bytes(self.jobs[index].text)

    def taken(self, offer: Offer, number: int) -> list[int]:
        """Which of them the child of this number took, in order."""
        return [index for index in offer.indices if (self.jobs[index].folder / taken_file(number)).exists()]

    def answer(self, index: int, answer: Answer, *, last: bool) -> None:
        """One is done; where it is the ``last``, none behind it is begun any more."""
        self.answers[index] = answer
        if last and index < self._end:
            for job in self.jobs[index + 1 : self._end]:
                (job.folder / job_file).unlink(missing_ok=True)
            self._end = index
            self._again = [one for one in self._again if one < index]

    def again(self, index: int) -> bool:
        """Have one done once more, by a child for it alone; False: it was before."""
        if index in self._twice:
            return False
        self._twice.add(index)
        if index < self._end:
            self._again.append(index)
        return True

    def lost(self) -> list[int]:
        """Once no child is left: those that should have answers."""
        return [index for index in range(self._end) if self.answers[index] is None]

    def _waiting(self) -> list[int]:
        return [index for index in self.lost() if (self.jobs[index].folder / job_file).exists()]
