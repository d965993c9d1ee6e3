"""The mutant check: a problem is admitted only if its gate refuses cheap surrogates of an answer.

A surrogate that passes everywhere shows inputs too weak to tell right from wrong: the same shape is then also
checked on stronger inputs (the file's own stay for timing). Where that does not help, nothing could be judged,
and the problem is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.problem import Problem
from fitness.target import ProblemError

Gate = Callable[[LoadedCase, Draw, list[Tensor]], float]  # largest error in units of the bound; above 1 is wrong

KEY = "admission"
STRONGER = ("normal", "rowscale", "large", "uniform", "integers")
EXACT = 1e-11  # relative; float64 rounds this finely, so a closer surrogate is the function itself
MOST_HALVED = 4  # dimensions of which half is left out in turn
UNPOLICED = "precision: not policed"


class Scene:
    """One draw of one case, with what surrogates are made from."""

    def __init__(self, loaded: LoadedCase) -> None:
        self.loaded = loaded
        self.draw = loaded.draw(KEY)

    @cached_property
    def expected(self) -> list[Tensor]:
        """The right outputs."""
        return self.reference(self.draw.inputs)

    def reference(self, inputs: list[Tensor]) -> list[Tensor]:
        """The right outputs for other inputs and the same parameters."""
        return self.loaded.reference(inputs, self.draw.parameters)

    @cached_property
    def stale(self) -> list[Tensor]:
        """The right outputs for another draw."""
        other = self.loaded.draw(f"{KEY}/other")
        return self.loaded.reference(other.inputs, other.parameters)

    @cached_property
    def flipped(self) -> list[Tensor]:
        """The right outputs where the first input is read in reverse."""
        first, *others = self.draw.inputs
        return self.reference([first.flip(list(range(first.dim()))), *others])

    def halved(self, dim: int) -> list[Tensor] | None:
        """The right outputs where the second half of the largest input along a dimension repeats the first."""
        inputs = list(self.draw.inputs)
        index = max(range(len(inputs)), key=lambda i: inputs[i].numel() * inputs[i].is_floating_point())
        whole = inputs[index]
        if not whole.is_floating_point() or dim >= whole.dim() or whole.shape[dim] < 2:
            return None
        half = whole.shape[dim] // 2
        kept = whole.narrow(dim, 0, whole.shape[dim] - half)
        inputs[index] = torch.cat([kept, whole.narrow(dim, 0, half)], dim)
        return self.reference(inputs)


Answer = Callable[[Scene, int], Tensor | None]  # a surrogate of one output, None where it makes no sense


def _zeros(scene: Scene, output: int) -> Tensor:
    return torch.zeros_like(scene.expected[output])


def _ones(scene: Scene, output: int) -> Tensor:
    return torch.ones_like(scene.expected[output])


def _mean(scene: Scene, output: int) -> Tensor | None:
    y = scene.expected[output]
    return None if y.numel() < 2 else _in_kind(y.double().mean().expand_as(y), y)


def _stale(scene: Scene, output: int) -> Tensor:
    return scene.stale[output]


def _row_mean(scene: Scene, output: int) -> Tensor | None:
    y = scene.expected[output]
    if y.dim() < 2 or y.shape[-1] < 2:
        return None
    return _in_kind(y.double().mean(-1, keepdim=True).expand_as(y), y)


def _input(scene: Scene, output: int) -> Tensor | None:
    y = scene.expected[output]
    twin = _twin(scene, y)
    return None if twin is None else _in_kind(twin.double(), y)


def _affine(scene: Scene, output: int) -> Tensor | None:
    y = scene.expected[output]
    twin = _twin(scene, y)
    if twin is None or y.numel() < 4:
        return None
    x, wide = twin.double().flatten(), y.double().flatten()
    kept = x.isfinite() & wide.isfinite()
    x0, y0 = x[kept] - x[kept].mean(), wide[kept] - wide[kept].mean()
    slope = (x0 * y0).sum() / (x0 * x0).sum()
    return _in_kind((slope * (x - x[kept].mean()) + wide[kept].mean()).view_as(y), y)


def _flipped(scene: Scene, output: int) -> Tensor:
    return scene.flipped[output]


def _halved(dim: int) -> Answer:
    def answer(scene: Scene, output: int) -> Tensor | None:
        found = scene.halved(dim)
        return None if found is None else found[output]

    return answer


@dataclass(frozen=True)
class Surrogate:
    """A cheap wrong answer. ``may_be_right``: some honest functions equal it, e.g. a sum read in reverse."""

    name: str
    answer: Answer
    may_be_right: bool = False


SURROGATES = (
    Surrogate("zeros", _zeros),
    Surrogate("ones", _ones),
    Surrogate("the mean of the output", _mean),
    Surrogate("its answer to an earlier input", _stale),
    Surrogate("the mean of each row of the output", _row_mean),
    Surrogate("its input", _input),
    Surrogate("a straight line through its input", _affine, may_be_right=True),
    Surrogate("the answer to its input reversed", _flipped, may_be_right=True),
    *(
        Surrogate(f"the answer to the first half of its input along dim {dim}", _halved(dim), may_be_right=True)
        for dim in range(MOST_HALVED)
    ),
)


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
    """The largest case again under other distributions, where the model as written passes the gate on them."""
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
    cases = [
        each.but(distribution=None)
        if each.case.derived and each.case.distribution and not _fair(each, gate)
        else each
        for each in problem.cases
    ]
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
    """Whether a kernel that reads its arguments in bfloat16 passes everywhere."""
    for loaded in cases:
        draw = loaded.draw(KEY)
        if not any(t.dtype is torch.float32 for t in draw.inputs + draw.parameters):
            return False
        coarse = loaded.reference(_rounded(draw.inputs), _rounded(draw.parameters))
        if not gate(loaded, draw, [_as_output(loaded, j, y) for j, y in enumerate(coarse)]) <= 1.0:
            return False
    return True


def _rounded(tensors: list[Tensor]) -> list[Tensor]:
    return [t.to(torch.bfloat16).to(t.dtype) if t.is_floating_point() else t for t in tensors]


def _with_cases(problem: Problem, added: list[LoadedCase], notes: list[str]) -> Problem:
    """The problem with further cases after the given one, and with notes."""
    cases = [problem.cases[0], *added, *problem.cases[1:]]
    runnable = tuple(each.case for each in cases)
    given = problem.card.given
    shown = runnable if given.name == runnable[0].name else (given, *runnable)
    return Problem(replace(problem.card, cases=shown, notes=(*problem.card.notes, *notes)), cases)


def _twin(scene: Scene, y: Tensor) -> Tensor | None:
    """The first floating-point input of the output's shape."""
    fitting = (x for x in scene.draw.inputs if x.is_floating_point() and x.shape == y.shape)
    return next(fitting, None)


def _in_kind(values: Tensor, like: Tensor) -> Tensor:
    return values if like.is_floating_point() else values.nan_to_num().round().to(like.dtype)


def _as_output(loaded: LoadedCase, output: int, y: Tensor) -> Tensor:
    dtype: torch.dtype = getattr(torch, loaded.case.outputs[output].dtype)
    return y.to(dtype)
