"""Is it right? A kernel meets the cases in stages, and its first failure is final.

smoke (two small cases) → search gate (visible cases and four held-out shapes) → promotion gate (all of them,
with two different poisons). Derived cases are met last and decide only whether a kernel is ``general``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from torch import Tensor

from fitness.judge.bounds import Bound, bounds
from fitness.judge.compare import Comparison, compare
from fitness.judge.problem import Draw, LoadedCase, Problem
from fitness.judge.rig import KernelDied, Rig, Sets
from fitness.judging import SEARCH_HELD_OUT
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage

SMALL_BYTES = 1 << 20  # of a case whose second launch costs nothing worth saving
SMOKE_CASES = 2
# Of a sampled bound, of which a few samples are a noisy estimate: between these a surer one decides.
DOUBTFUL, BEYOND_DOUBT = 0.7, 6.0
SMALL_S, LARGE_S = 5.0, 10.0  # limits of one launch on small and on other cases; timed blocks have their own


class Failure(Exception):
    """A kernel failed a case; carries what the verdict needs."""

    def __init__(self, stage: Stage, case: CaseVerdict, evidence: Evidence | None) -> None:
        super().__init__(case.reason)
        self.stage = stage
        self.case = case
        self.evidence = evidence


class Gate:
    """The correctness gate of one problem.

    Args:
        problem: the loaded problem.
        rig: how kernels run.
    """

    def __init__(self, problem: Problem, rig: Rig) -> None:
        self._problem = problem
        self._rig = rig

    def stages(self, *, promotion: bool) -> Iterator[tuple[Stage, list[LoadedCase]]]:
        """The stages in order, each with the cases it adds."""
        loaded = self._problem.cases  # all derived where the given case does not fit this machine
        declared = [c for c in loaded if not c.case.derived] or loaded
        by_size = sorted(declared, key=lambda c: sum(spec.nbytes for spec in c.case.arguments))
        visible = [c for c in by_size if not c.case.held_out]
        held_out = [c for c in declared if c.case.held_out]
        smoke = visible[:SMOKE_CASES]
        yield Stage.SMOKE, smoke
        yield Stage.SEARCH_GATE, held_out[:SEARCH_HELD_OUT] + visible[SMOKE_CASES:]
        if promotion:
            yield Stage.PROMOTION_GATE, held_out[SEARCH_HELD_OUT:]

    def passed(self, kernel: Path, key: str, *, promotion: bool) -> list[CaseVerdict]:
        """Verdicts of all cases.

        Raises:
            Failure: at the first case that fails.
        """
        return [
            self.case(kernel, loaded, key, stage, twice=promotion)
            for stage, cases in self.stages(promotion=promotion)
            for loaded in cases
        ]

    def derived(self, kernel: Path, key: str) -> list[CaseVerdict]:
        """Verdicts of the derived cases up to and including the first that fails."""
        verdicts: list[CaseVerdict] = []
        for loaded in self._problem.cases:
            if loaded.case.derived:
                try:
                    verdicts.append(self.case(kernel, loaded, key, Stage.PROMOTION_GATE))
                except Failure as failure:
                    return [*verdicts, failure.case]
        return verdicts

    def case(
        self, kernel: Path, loaded: LoadedCase, key: str, stage: Stage, *, twice: bool = False
    ) -> CaseVerdict:
        """One case: every launch on fresh data and fresh poison, all outputs compared with float64.

        Small cases, and on request all, run twice in one process: what is remembered from a call shows. The
        second run finds scratch memory as the first one left it, not poisoned. In screenings
        Rig.repeats says whether small cases do.

        Raises:
            Failure: it died, wrote where it must not, or is wrong.
        """
        case = loaded.case
        blank = CaseVerdict(case.name, case.held_out, case.derived, Outcome.CORRECT)
        read_only = len(case.inputs) + len(case.parameters)
        small = sum(spec.nbytes for spec in case.arguments) < SMALL_BYTES
        twice = twice or (small and (self._rig.repeats or stage is Stage.PROMOTION_GATE))
        launches, limit_s = (2 if twice else 1), (SMALL_S if small else LARGE_S)
        worst = 0.0
        with closing(self._rig.sets(case.arguments, read_only, launches)) as sets:
            draws = [loaded.draw(key, ordinal) for ordinal in range(launches)]
            for index, draw in enumerate(draws):
                for buffer, tensor in zip(sets.inputs(index), draw.inputs + draw.parameters, strict=True):
                    buffer.copy_(tensor)
            try:
                with self._rig.launcher(kernel, case, sets) as launcher:
                    for index, draw in enumerate(draws):
                        sets.poison(index, index + 1)
                        if index:
                            sets.inherit(index)
                        launcher.block(index, 1, limit_s)
                        found = _compared(sets, index, loaded, draw)
                        worst = max(worst, found.max_error)
                        if not found.max_error <= 1.0:
                            reason = describe(found, case.name)
                            wrong = replace(
                                blank, status=Outcome.INCORRECT, reason=reason, max_error=found.max_error
                            )
                            evidence = replace(found.evidence or Evidence(), case=case.name)
                            raise Failure(stage, wrong, evidence)
            except KernelDied as death:
                reason = f"{death.reason} on case {case.name}"
                raise Failure(
                    stage, replace(blank, status=death.outcome, reason=reason), Evidence(case=case.name)
                ) from death
        return replace(blank, max_error=worst)


def _compared(sets: Sets, index: int, loaded: LoadedCase, draw: Draw) -> Comparison:
    damage = sets.damage(index)
    if damage:
        return Comparison(math.inf, Evidence(log=damage))
    return judged(loaded, draw, sets.outputs(index))


def judged(loaded: LoadedCase, draw: Draw, outputs: list[Tensor]) -> Comparison:
    """Outputs against the float64 reference, in units of the bound."""
    worst = 0.0
    for first, part, shown in loaded.pieces(draw, outputs):
        right = _right(loaded, part)
        found = compare(shown, right.outputs, right.allowed)
        if loaded.tolerance is None and DOUBTFUL < found.max_error < BEYOND_DOUBT:
            found = compare(shown, right.outputs, right.surely_allowed)
        if found.evidence:
            return moved(found, first)
        worst = max(worst, found.max_error)
    return Comparison(worst)


class _Right:
    """The reference's outputs on a draw, and what each is allowed."""

    def __init__(self, loaded: LoadedCase, draw: Draw) -> None:
        self._loaded, self._draw = loaded, draw
        self.outputs = loaded.reference(draw.inputs, draw.parameters)
        self.allowed = self._bounds(surely=False)

    @cached_property
    def surely_allowed(self) -> list[Bound]:
        return self._bounds(surely=True)

    def _bounds(self, *, surely: bool) -> list[Bound]:
        loaded, draw = self._loaded, self._draw
        inputs, parameters = widened(draw.inputs), widened(draw.parameters)
        return bounds(
            loaded.tolerance, inputs, parameters, self.outputs, loaded.case.outputs, loaded.reference,
            surely=surely,
        )  # fmt: skip


_right = lru_cache(maxsize=1)(_Right)  # the mutant check asks a dozen times about one draw


def moved(found: Comparison, first: int) -> Comparison:
    """A comparison of some rows, its evidence placed among all of them."""
    evidence = found.evidence
    if first == 0 or evidence is None or not evidence.index:
        return found
    index = (evidence.index[0] + first, *evidence.index[1:])
    return replace(found, evidence=replace(evidence, index=index))


def widened(tensors: list[Tensor]) -> list[Tensor]:
    """Floating-point tensors in float64, the others as they are."""
    return [t.double() if t.is_floating_point() else t for t in tensors]


def describe(found: Comparison, case: str) -> str:
    """One line on a wrong result."""
    evidence = found.evidence
    if evidence is None:
        return f"wrong result on case {case}"
    if evidence.index is None:
        return f"{evidence.log or 'wrong result'} on case {case}"
    where = f"output {evidence.output or 0} at {list(evidence.index)} is {evidence.got:.9g}"
    why = evidence.log or f"{found.max_error:.3g} times the bound"
    return f"wrong result on case {case}: {where}, expected {evidence.expected:.9g} ({why})"
