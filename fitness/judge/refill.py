"""Data that never repeats, at about the speed of a copy, for timed blocks.

Fresh draws are too slow: a block's refill would take longer than the block. Where elements are independent of
each other, a window at a secret place in a secret pool, times a secret factor, is as good as a fresh draw.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from fitness.judge.structure import Kind, kind_of

LEAST_FACTOR = 0.984  # small enough a change to keep a domain such as [0, 1)
Fresh = Callable[[int], tuple[list[Tensor], list[Tensor]]]


class Refill:
    """Writes fresh data into the argument sets of one case.

    Args:
        fresh: real draws of (inputs, parameters), numbered; the first two make the pools.
        key: the secret.
    """

    def __init__(self, fresh: Fresh, key: str) -> None:
        self._fresh = fresh
        self._key = key
        (inputs, parameters), (more_inputs, more_parameters) = fresh(0), fresh(1)
        self._inputs = [_Pool(a, b) for a, b in zip(inputs, more_inputs, strict=True)]
        self._parameters = [_Pool(a, b) for a, b in zip(parameters, more_parameters, strict=True)]
        self._needs_draws = any(pool.needs_draws for pool in self._inputs + self._parameters)

    def fill(self, ordinal: int, inputs: list[Tensor], parameters: list[Tensor]) -> None:
        """Write the data numbered ``ordinal`` into the given tensors; the same number gives the same data."""
        rng = Random(f"{self._key}/{ordinal}")
        drawn_inputs: list[Tensor | None] = [None] * len(inputs)
        drawn_parameters: list[Tensor | None] = [None] * len(parameters)
        if self._needs_draws:
            fresh_inputs, fresh_parameters = self._fresh(2 + ordinal)
            drawn_inputs, drawn_parameters = [*fresh_inputs], [*fresh_parameters]
        for pool, target, drawn in zip(self._inputs, inputs, drawn_inputs, strict=True):
            pool.write(target, drawn, rng)
        for pool, target, drawn in zip(self._parameters, parameters, drawn_parameters, strict=True):
            pool.write(target, drawn, rng)


class _Pool:
    """Two draws of one tensor, end to end."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        self._kind = kind_of(first, second)
        self._length = first.numel()
        self.needs_draws = self._kind in (Kind.MASKED, Kind.ORDERED)
        if self._kind is Kind.CONSTANT:
            self._data = first.reshape(-1)
        elif self.needs_draws:
            self._data = first.new_empty(0)
        else:
            self._data = torch.cat([first.reshape(-1), second.reshape(-1)])

    def write(self, target: Tensor, drawn: Tensor | None, rng: Random) -> None:
        if self.needs_draws and drawn is not None:
            target.copy_(drawn)
            return
        flat = target.view(-1)
        start = rng.randrange(self._data.numel() - self._length + 1)
        factor = rng.uniform(LEAST_FACTOR, 1.0)
        window = self._data[start : start + self._length]
        if self._kind is Kind.FREE:
            torch.mul(window, factor, out=flat)
        else:
            flat.copy_(window)
