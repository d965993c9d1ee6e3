"""The mutant check: a problem is admitted only if its gate refuses cheap surrogates of an answer.

A surrogate that passes everywhere shows inputs too weak to tell right from wrong: the same shape is then
also checked on stronger inputs (the file's own stay for timing). Where that does not help, nothing could be
judged, and the problem is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.problem import Problem
from fitness.judge.surrogates import EXACT, KEY, SURROGATES, Scene, Surrogate
from fitness.target import ProblemError

Gate = Callable[
    [LoadedCase, Draw, list[Tensor]], float
]  # largest error in units of the bound; above 1 is wrong

STRONGER = ("normal", "rowscale", "large", "uniform", "integers")
FAIRNESS_SECONDS = (
    10.0  # for trying the model as written on the derived cases; those not tried keep plain inputs
)
UNPOLICED = "precision: not policed"


def strengthen(problem: Problem, gate: Gate) -> Problem:
    """The problem with inputs that refuse all surrogates.

    Args:
        problem: as loaded.
        gate: largest error of outputs, in units of the bound.

    Raises:
        ProblemError: a surrogate passes whatever the inputs.
    """
    problem = _with_fair_distributions(problem, gate)
    decisive = _decisive(problem)
    passing = _passing(decisive, gate)
    added: list[LoadedCase] = []
    notes: list[str] = []
    if passing:
        for stronger in _stronger(decisive, gate):
            still = _survivors(stronger, passing, gate)
            if len(still) < len(passing):
                added.append(stronger)
            passing = still
            if not passing:
                break
        if added:
            kinds = ", ".join(str(each.case.distribution) for each in added)
            notes.append(f"checked on {kinds} inputs too: a surrogate passes on the file's own")
    passing = [(s, j) for s, j in passing if not (s.may_be_right and _is_right(decisive, s, j))]
    notes += _refused_or_noted(problem, passing)
    if _bf16_passes([*decisive, *added], gate):
        notes.append(UNPOLICED)
    return _with_cases(problem, added, notes)


def _decisive(problem: Problem) -> list[LoadedCase]:
    """The cases that decide whether a kernel is correct, the cheapest first."""
    declared = [each for each in problem.cases if not each.case.derived] or problem.cases
    return sorted(declared, key=lambda each: each.case.bytes)


def _passing(cases: Sequence[LoadedCase], gate: Gate) -> list[tuple[Surrogate, int]]:
    """Surrogates, each of one output, that pass on all cases."""
    outputs = range(len(cases[0].case.outputs))
    passing = [(surrogate, output) for surrogate in SURROGATES for output in outputs]
    applied: set[tuple[Surrogate, int]] = set()
    for loaded in cases:
        passing = _survivors(loaded, passing, gate, applied)
        if not passing:
            break
    return [each for each in passing if each in applied]


def _survivors(
    loaded: LoadedCase,
    candidates: list[tuple[Surrogate, int]],
    gate: Gate,
    applied: set[tuple[Surrogate, int]] | None = None,
) -> list[tuple[Surrogate, int]]:
    scene = Scene(loaded)
    left = []
    with loaded.remembering():
        right = [_as_output(loaded, j, y) for j, y in enumerate(scene.expected)]
        for surrogate, output in candidates:
            answer = surrogate.answer(scene, output)
            if answer is not None:
                outputs = list(right)
                outputs[output] = _as_output(loaded, output, answer)
                if not gate(loaded, scene.draw, outputs) <= 1.0:
                    continue
                if applied is not None:
                    applied.add((surrogate, output))
            left.append((surrogate, output))
    return left


def _stronger(decisive: list[LoadedCase], gate: Gate) -> list[LoadedCase]:
    """The largest case again under other distributions, those on which the model as written passes."""
    plain = [each for each in decisive if each.case.distribution is None] or decisive
    base = plain[-1]
    found = []
    for distribution in STRONGER:
        name = f"{base.case.name}-{distribution}"
        candidate = base.but(distribution=distribution, name=name, timed=False, held_out=False)
        if distribution != base.case.distribution and _fair(candidate, gate):
            found.append(candidate)
    return found


def _fair(loaded: LoadedCase, gate: Gate) -> bool:
    """Whether the reference is finite and the model as written passes."""
    try:
        draw = loaded.draw(KEY)
        outputs = loaded.framework(draw.inputs, draw.parameters)
        if not all(bool(y.isfinite().all()) for y in outputs if y.is_floating_point()):
            return False
        return gate(loaded, draw, outputs) <= 1.0
    except ProblemError:
        return False


def _with_fair_distributions(problem: Problem, gate: Gate) -> Problem:
    """Derived cases on which not even the model as written passes go back to the file's own inputs."""
    deadline = time.monotonic() + FAIRNESS_SECONDS
    cases = []
    for each in problem.cases:
        doubtful = each.case.derived and each.case.distribution is not None
        if doubtful and (time.monotonic() > deadline or not _fair(each, gate)):
            each = each.but(distribution=None)
        cases.append(each)
    return _with_cases(replace(problem, cases=cases), [], [])


def _is_right(cases: list[LoadedCase], surrogate: Surrogate, output: int) -> bool:
    """Whether a surrogate is not merely near but equal to the function, up to float64's rounding."""
    for loaded in cases:
        scene = Scene(loaded)
        answer, y = surrogate.answer(scene, output), scene.expected[output]
        if answer is None:
            continue
        finite = y.isfinite() & answer.isfinite()
        distance = (answer.double() - y.double())[finite].abs()
        if distance.numel() and float(distance.max()) > EXACT * float(y.double()[finite].abs().max()):
            return False
    return True


def _refused_or_noted(problem: Problem, passing: list[tuple[Surrogate, int]]) -> list[str]:
    """Notes on outputs that nothing polices.

    Raises:
        ProblemError: there is no other output.
    """
    unpoliced = {output: surrogate.name for surrogate, output in reversed(passing)}
    if len(unpoliced) == len(problem.card.given.outputs):
        raise ProblemError(
            f"{problem.card.path}: a kernel that returns {unpoliced[0]} passes every check of this problem; "
            "let Model.forward depend on its input, or declare a smaller TOLERANCE"
        )
    return [f"output {output}: not policed ({name} passes)" for output, name in sorted(unpoliced.items())]


def _bf16_passes(cases: list[LoadedCase], gate: Gate) -> bool:
    """Whether a kernel that reads its arguments in bfloat16 passes everywhere, though results differ."""
    if all(spec.dtype == "bfloat16" for spec in cases[0].case.inputs + cases[0].case.parameters):
        return False
    differs = False
    for loaded in cases:
        scene = Scene(loaded)
        inputs, parameters = _rounded(scene.draw.inputs), _rounded(scene.draw.parameters)
        coarse = loaded.reference(inputs, parameters)
        if not gate(loaded, scene.draw, [_as_output(loaded, j, y) for j, y in enumerate(coarse)]) <= 1.0:
            return False
        differs |= not all(
            torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
            for a, b in zip(coarse, scene.expected, strict=True)
        )
    return differs


def _rounded(tensors: list[Tensor]) -> list[Tensor]:
    return [t.to(torch.bfloat16).to(t.dtype) if t.is_floating_point() else t for t in tensors]


def _with_cases(problem: Problem, added: list[LoadedCase], notes: list[str]) -> Problem:
    """The problem with further cases after the given one, and with notes."""
    cases = [problem.cases[0], *added, *problem.cases[1:]]
    runnable = tuple(each.case for each in cases)
    given = problem.card.given
    shown = runnable if given.name == runnable[0].name else (given, *runnable)
    return Problem(replace(problem.card, cases=shown, notes=(*problem.card.notes, *notes)), cases)


def _as_output(loaded: LoadedCase, output: int, y: Tensor) -> Tensor:
    dtype: torch.dtype = getattr(torch, loaded.case.outputs[output].dtype)
    return y.to(dtype)
