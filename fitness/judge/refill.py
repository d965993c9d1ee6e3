"""Data that never repeats, at about the speed of a copy, for timed blocks.

Fresh draws are too slow: a block's refill would take longer than the block. Where elements are independent of
each other, a window at a secret place in a secret pool, element by element times a window of secret factors,
is as good as a fresh draw. One factor for the whole window would not do: a kernel could learn the pool over
its launches, find a window by its ratios, and answer from sums it prepared. Pairs of windows are too many to
prepare anything for; and factors that differ widely keep their mean from being a good guess.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from fitness.judge.structure import Kind, kind_of
from fitness.judge.usercode import seed_of

# Factors end at 1, which keeps a domain such as [0, 1). What comes near zero may come nearer; what stays
# clear of it (a variance, numbers above 1) may have a domain that does.
LEAST_FACTOR, LEAST_FACTOR_CLEAR = 0.5, 0.984
CLEAR = 0.02  # of the largest magnitude that the least one has
STRETCH = 1 << 24  # values that take their factors from one place
ROOM = 1 << 16  # places for it
LONG, STEP = 1 << 18, 8  # windows as long begin at every eighth place: a device reads aligned ones far faster
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
        firsts, seconds = [*inputs, *parameters], [*more_inputs, *more_parameters]
        pools = [
            _Pool(a, b, seed_of(key, "factors", n))
            for n, (a, b) in enumerate(zip(firsts, seconds, strict=True))
        ]
        self._inputs, self._parameters = pools[: len(inputs)], pools[len(inputs) :]
        self._needs_draws = any(pool.needs_draws for pool in pools)

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
    """Two draws of one tensor, end to end, and factors for them."""

    def __init__(self, first: Tensor, second: Tensor, seed: int) -> None:
        self._kind = kind_of(first, second)
        self._length = first.numel()
        self.needs_draws = self._kind in (Kind.MASKED, Kind.ORDERED)
        if self._kind is Kind.CONSTANT:
            self._data = first.reshape(-1)
        elif self.needs_draws:
            self._data = first.new_empty(0)
        else:
            self._data = torch.cat([first.reshape(-1), second.reshape(-1)])
        if self._kind is Kind.FREE:
            least = LEAST_FACTOR_CLEAR if _clear_of_zero(self._data) else LEAST_FACTOR
            self._factors = self._data.new_empty(min(self._length, STRETCH) + ROOM)
            chance = torch.Generator(self._data.device).manual_seed(seed)
            self._factors.uniform_(least, 1.0, generator=chance)

    def write(self, target: Tensor, drawn: Tensor | None, rng: Random) -> None:
        if self.needs_draws and drawn is not None:
            target.copy_(drawn)
            return
        flat = target.view(-1)
        step = STEP if self._length >= LONG else 1
        start = rng.randrange(0, self._data.numel() - self._length + 1, step)
        window = self._data[start : start + self._length]
        if self._kind is not Kind.FREE:
            flat.copy_(window)
            return
        for begin in range(0, self._length, STRETCH):
            part = flat[begin : begin + STRETCH]
            place = rng.randrange(0, ROOM + 1, step)
            factors = self._factors[place : place + part.numel()]
            torch.mul(window[begin : begin + STRETCH], factors, out=part)


def _clear_of_zero(values: Tensor) -> bool:
    """Whether all values lie well away from zero, by their own measure."""
    least, most = torch.aminmax(values.abs())
    return bool(least > CLEAR * most)
