"""Trusted kernels that tell what memory can do: copy, read, write, each past the L2 cache."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
import triton
import triton.language as tl

from fitness.judge.place import place

TILE = 8192  # words of four bytes that one program moves
ROTATION_BYTES = 1 << 30  # of all buffers of a probe together


@triton.jit
def _copy(source, target, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    tl.store(target + at, tl.load(source + at))


@triton.jit
def _read(source, target, TILE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    values = tl.load(source + pid * TILE + tl.arange(0, TILE))
    tl.store(target + pid, tl.sum(values, 0))


@triton.jit
def _write(source, target, TILE: tl.constexpr):  # noqa: ARG001
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    tl.store(target + at, tl.full([TILE], 1.0, tl.float32))


KERNELS = {"copy": (_copy, 2), "read": (_read, 1), "write": (_write, 1)}  # and how often a byte is moved


@lru_cache(maxsize=64)
def bandwidth(nbytes: int, best: Callable[[Callable[[], object]], float]) -> float:
    """Bytes per second that the best probe moves, at buffers of about this size together.

    Args:
        nbytes: of one argument set.
        best: seconds of some work on the device, the best of a few.
    """
    return max(rates(nbytes, best).values())


def rates(nbytes: int, best: Callable[[Callable[[], object]], float]) -> dict[str, float]:
    """Bytes per second of each probe; arguments as for ``bandwidth``."""
    tiles = max(nbytes // 2 // (4 * TILE), 1)
    sets = max(2, ROTATION_BYTES // max(nbytes, 1))
    pairs = [[torch.rand(tiles * TILE, device=place()) for _ in range(2)] for _ in range(sets)]
    found = {}
    for name, (kernel, moves) in KERNELS.items():

        def enqueue(kernel: object = kernel) -> None:
            for source, target in pairs:
                kernel[(tiles,)](source, target, TILE, num_warps=8)  # type: ignore[index]

        found[name] = 4 * moves * tiles * TILE * sets / best(enqueue)
    return found
