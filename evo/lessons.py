"""What a lesson is worth: whether children that were told it do better than their parents more often.

A lot decides who is told, so a lesson that came late, when little is left to gain, is measured against its
own time. Each comparison is between two small groups: a lesson goes once the odds that it helps are about one
in six, and not before ten children were seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from populations.learned import Lesson

KEPT_BACK = 1 / 3  # of the chances to tell a lesson: without a comparison nobody knows what it is worth
LEAST = 10  # children until a lesson may be dropped
DOUBT = 1.0  # standard deviations below no difference
FADES = 0.98  # what a child still counts after the next one: lessons may cease to hold
PRIOR = 2.0  # children that each group starts with, at the rate of both together


@dataclass
class Tally:
    """Children, and those of them that did better than their parents; older ones count less."""

    children: float = 0.0
    better: float = 0.0

    def add(self, children: float, better: float) -> None:
        """One more child of either group; 0 for the other one."""
        self.children = FADES * self.children + children
        self.better = FADES * self.better + better

    def rate(self, usual: float) -> tuple[float, float]:
        """Mean and variance of the share that did better, from ``PRIOR`` children at the usual share."""
        count = self.children + PRIOR
        mean = (self.better + PRIOR * usual) / count
        return mean, mean * (1.0 - mean) / (count + 1.0)


@dataclass
class Held:
    """A lesson in force.

    Attributes:
        number: its place in the order in which the run learned them, from 1.
        lesson: itself.
        told: children whose authors were told it.
        untold: those whose authors were not, by lot.
        seen: how many there were of both.
    """

    number: int
    lesson: Lesson
    told: Tally = field(default_factory=Tally)
    untold: Tally = field(default_factory=Tally)
    seen: int = 0

    def count(self, told: bool, better: bool) -> None:
        """One more child.

        Args:
            told: whether its author was told the lesson.
            better: whether it did better than its parents.
        """
        self.seen += 1
        self.told.add(told, told and better)
        self.untold.add(not told, not told and better)

    @property
    def score(self) -> float:
        """By how many standard deviations the share of those told lies above the share of the others."""
        usual = (self.told.better + self.untold.better + 1.0) / (
            self.told.children + self.untold.children + 2.0
        )
        (told, doubt), (untold, more) = self.told.rate(usual), self.untold.rate(usual)
        return (told - untold) / math.sqrt(doubt + more)

    @property
    def holds(self) -> bool:
        """Whether it may still help, as far as is known."""
        return self.seen < LEAST or self.score >= -DOUBT
