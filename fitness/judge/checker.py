"""Whether the outputs of a timed launch hold: quicker than the gate, against the framework's own result."""

from __future__ import annotations

import math
from dataclasses import replace
from random import SystemRandom

from torch import Tensor

from fitness.judge.bounds import Bound, bounds
from fitness.judge.compare import Comparison, compare
from fitness.judge.gate import describe, judged, moved, widened
from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.quick import Quick, widened_narrow
from fitness.judge.rig import Check, Sets, WrongOutput

Piece = tuple[int, Draw, list[Tensor]]  # of a set: its first row, its data, its outputs
TWICE = 2.0  # the bound, where the framework's float32 result stands for the reference


def checker(loaded: LoadedCase, exact_share: float = 0.0, quick: Quick | None = None) -> Check:
    """Compares a block's outputs with the framework's on the same inputs, at twice the bound.

    A secret share of the sets is judged by float64 at the plain bound instead. Where the bound is sampled,
    the comparison with the framework allows its largest value everywhere: sampling takes longer than a block.

    Args:
        loaded: the case.
        exact_share: of the sets.
        quick: the comparison with the framework fused; what it doubts is compared step by step.
    """
    inputs, case = len(loaded.case.inputs), loaded.case
    sampled = None if loaded.tolerance is not None else _uniform_bounds(loaded)
    rng = SystemRandom()

    def check(sets: Sets, count: int) -> None:
        damage = sets.damage(0, count)
        if damage:
            raise WrongOutput(f"{damage} on case {case.name} in a timed launch")
        pieces: list[Piece] = []
        for index in range(count):
            tensors, outputs = sets.inputs(index), sets.outputs(index)
            draw = Draw(tensors[:inputs], tensors[inputs:])
            if rng.random() < exact_share:
                refuse(judged(loaded, draw, outputs))
            else:
                pieces += loaded.pieces(draw, outputs)
        looks = [(part, shown) for _, part, shown in pieces]
        errors = [math.inf] * len(pieces) if quick is None else quick.errors(looks)
        for (first, part, shown), error in zip(pieces, errors, strict=True):
            if not error <= 1.0:
                refuse(moved(step_by_step(part, shown), first))

    def step_by_step(part: Draw, shown: list[Tensor]) -> Comparison:
        want = loaded.nearly(part.inputs, part.parameters)
        read, held, want = (widened_narrow(ts) for ts in (part.inputs, part.parameters, want))
        allowed = sampled or bounds(loaded.tolerance, read, held, want, case.outputs)
        return compare(shown, want, allowed, scale=TWICE)

    def refuse(found: Comparison) -> None:
        if not found.max_error <= 1.0:
            raise WrongOutput(describe(found, case.name) + " in a timed launch", found.evidence)

    return check


def _uniform_bounds(loaded: LoadedCase) -> list[Bound]:
    draw = loaded.draw("bounds", checking=False)
    want = loaded.reference(draw.inputs, draw.parameters)
    inputs, parameters = widened(draw.inputs), widened(draw.parameters)
    sampled = bounds(None, inputs, parameters, want, loaded.case.outputs, loaded.reference)
    return [replace(bound, elementwise=bound.elementwise.max().float()) for bound in sampled]
