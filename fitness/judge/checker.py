"""Whether the outputs of a timed launch hold: quicker than the gate, against the framework's own result."""

from __future__ import annotations

from dataclasses import replace
from random import SystemRandom

from torch import Tensor

from fitness.judge.bounds import Bound, bounds
from fitness.judge.compare import Comparison, compare
from fitness.judge.gate import describe, judged, moved, widened
from fitness.judge.loaded import NARROW, Draw, LoadedCase
from fitness.judge.rig import Check, Sets, WrongOutput


def checker(loaded: LoadedCase, exact_share: float = 0.0) -> Check:
    """Compares a set's outputs with the framework's on the same inputs, at twice the bound.

    A secret share of the sets is judged by float64 at the plain bound instead. Where the bound is sampled,
    the comparison with the framework allows its largest value everywhere: sampling takes longer than a block.

    Args:
        loaded: the case.
        exact_share: of the sets.
    """
    inputs, case = len(loaded.case.inputs), loaded.case
    sampled = None if loaded.tolerance is not None else _uniform_bounds(loaded)
    rng = SystemRandom()

    def check(sets: Sets, index: int) -> None:
        tensors, outputs = sets.inputs(index), sets.outputs(index)
        damage = sets.damage(index)
        if damage:
            raise WrongOutput(f"{damage} on case {case.name} in a timed launch")
        draw = Draw(tensors[:inputs], tensors[inputs:])
        exact = rng.random() < exact_share
        found = judged(loaded, draw, outputs) if exact else nearly(draw, outputs)
        if not found.max_error <= 1.0:
            raise WrongOutput(describe(found, case.name) + " in a timed launch", found.evidence)

    def nearly(draw: Draw, outputs: list[Tensor]) -> Comparison:
        worst = 0.0
        for first, part, shown in loaded.pieces(draw, outputs):
            want = loaded.nearly(part.inputs, part.parameters)
            read, held, want = (_float32(ts) for ts in (part.inputs, part.parameters, want))
            allowed = sampled or bounds(loaded.tolerance, read, held, want, case.outputs)
            found = compare(shown, want, allowed, scale=2.0)
            if found.evidence:
                return moved(found, first)
            worst = max(worst, found.max_error)
        return Comparison(worst)

    return check


def _float32(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.float() if tensor.dtype in NARROW else tensor for tensor in tensors]


def _uniform_bounds(loaded: LoadedCase) -> list[Bound]:
    draw = loaded.draw("bounds", checking=False)
    want = loaded.reference(draw.inputs, draw.parameters)
    inputs, parameters = widened(draw.inputs), widened(draw.parameters)
    sampled = bounds(None, inputs, parameters, want, loaded.case.outputs, loaded.reference)
    return [replace(bound, elementwise=bound.elementwise.max().float()) for bound in sampled]
