"""The operations on which the gate is calibrated: reference, honest implementations and mutants of each.

The built-in problems are judged with the bounds that their own files declare, and like every operation also
under the sampled forward model, as a problem that declares nothing would be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.gate import honest
from fitness.judge.inputs import DISTRIBUTIONS
from fitness.judge.source import read

Arguments = list[Tensor]  # inputs, then parameters
Implementation = Callable[..., Any]  # arguments to one output or several
PROBLEMS = Path(__file__).parents[2] / "fitness" / "problems"
EVERYDAY = ("normal", "rowscale", "spiky", "uniform")


@dataclass(frozen=True)
class Operation:
    """One operation at all its sizes.

    Attributes:
        reference: computes in the dtype of its arguments.
        arguments: draws (inputs, parameters) for a length, a number of rows and a distribution.
        tolerance: the declaration for a length; None where only the sampled model applies.
        narrow: the declaration where arguments and results are bfloat16; None where they never are.
        narrow_honest: for that case, implementations beside the honest ones.
        coarse: for that case, implementations of too little precision beside an honest one in bfloat16.
        keeps: whether results stay in float32 there (a loss, a scale).
    """

    name: str
    reference: Implementation
    arguments: Callable[[int, int, str, Generator], tuple[Arguments, Arguments]]
    tolerance: Callable[[int], Any] | None
    honest: dict[str, Implementation]
    mutants: dict[str, Implementation]
    lengths: tuple[int, ...] = (7, 127, 4096, 32768)
    distributions: tuple[str, ...] = (*EVERYDAY, "large", "tiny")
    narrow: Callable[[int], Any] | None = None
    narrow_honest: dict[str, Implementation] = field(default_factory=dict)
    coarse: dict[str, Implementation] = field(default_factory=dict)
    keeps: bool = False


def draw(shape: tuple[int, ...], distribution: str, rng: Generator) -> Tensor:
    if distribution == "positive":
        return torch.rand(shape, generator=rng)
    values = DISTRIBUTIONS[distribution](shape, torch.float32, rng)
    return 1.5 * values if distribution == "large" else values  # far enough for exp to overflow


def rows(count: int = 1) -> Callable[[int, int, str, Generator], tuple[Arguments, Arguments]]:
    """``count`` matrices of rows × length."""
    return lambda n, r, kind, rng: ([draw((r, n), kind, rng) for _ in range(count)], [])


def problem(name: str, **constants: int) -> ModuleType:
    return read(PROBLEMS / f"{name}.py").execute(constants)


def declared(name: str, constant: str, **others: int) -> Callable[[int], Any]:
    return lambda n: problem(name, **{constant: n}, **others).TOLERANCE


def by_sum(make: Callable[[honest.Sum], Implementation]) -> dict[str, Implementation]:
    return {name: make(total) for name, total in honest.SUMS.items()}


def rows_for(length: int) -> int:
    """Enough rows for the mean signed error where they are cheap."""
    return 40 if length <= 4096 else 8
