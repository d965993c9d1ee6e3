"""A member of the population: a kernel, where it came from, and what the judge said."""

from __future__ import annotations

from deap import base

from populations.kernel import Kernel
from populations.verdict import Outcome, Verdict


class Rank(base.Fitness):  # type: ignore[misc]
    """DEAP's fitness for one objective, larger is better; invalid until the kernel was measured."""

    weights = (1.0,)


class Individual:
    """One proposal that became an evaluation. Equality is identity: two are never "the same".

    Attributes:
        id: number of the evaluation in its run, from 1.
        kernel: the source; None once only the run's store holds it.
        sha: hash of the source.
        parents: ids of the parents; empty for a seed.
        operator: what made it ("seed", "tune", "cross", or a structural operator's name).
        rationale: one line that says why the operator tried this.
        verdict: None until judged.
        fitness: DEAP fitness, valid only for a measured kernel.
    """

    __slots__ = ("fitness", "id", "kernel", "operator", "parents", "rationale", "sha", "verdict")

    def __init__(
        self,
        id: int,
        kernel: Kernel,
        parents: tuple[int, ...],
        operator: str,
        rationale: str,
        verdict: Verdict | None = None,
    ) -> None:
        self.id = id
        self.kernel: Kernel | None = kernel
        self.sha = kernel.sha
        self.parents = parents
        self.operator = operator
        self.rationale = rationale
        self.verdict: Verdict | None = None
        self.fitness = Rank()
        if verdict is not None:
            self.judged(verdict)

    def judged(self, verdict: Verdict) -> None:
        """Take the judge's word; only a measured kernel gets a fitness."""
        self.verdict = verdict
        if verdict.status is Outcome.MEASURED and verdict.rank is not None:
            self.fitness.values = (verdict.rank,)
        else:
            del self.fitness.values

    def __repr__(self) -> str:
        status = self.verdict.status if self.verdict else "waiting"
        return f"<Individual {self.id} {self.operator} {status}>"
