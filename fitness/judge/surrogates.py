"""Cheap surrogates of an answer, which a gate worth its name refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fitness.judge.loaded import LoadedCase

KEY = "admission"
EXACT = 1e-11  # relative; float64 rounds this finely, so a closer surrogate is the function itself
MOST_HALVED = 4  # dimensions of which half is left out in turn


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
        """The right outputs where half of the largest input, along a dimension, copies the other half."""
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
        Surrogate(
            f"the answer to the first half of its input along dim {dim}", _halved(dim), may_be_right=True
        )
        for dim in range(MOST_HALVED)
    ),
)


def _twin(scene: Scene, y: Tensor) -> Tensor | None:
    """The first floating-point input of the output's shape."""
    fitting = (x for x in scene.draw.inputs if x.is_floating_point() and x.shape == y.shape)
    return next(fitting, None)


def _in_kind(values: Tensor, like: Tensor) -> Tensor:
    return values if like.is_floating_point() else values.nan_to_num().round().to(like.dtype)
