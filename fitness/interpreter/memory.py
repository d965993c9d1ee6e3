"""A plan's storages in memory of the child: guard pages around each, poison in what nobody wrote.

A write that lands beside a storage is found afterwards, a read there meets all ones; further away both are a
segmentation fault. Inputs are made read-only once they are filled.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence

import numpy as np
import torch

from fitness.interpreter.numbers import Array
from fitness.plan import View

PAGE = mmap.PAGESIZE
REDZONE = PAGE  # before each storage, and at least as much behind it
GUARD = 1 << 20  # bytes between storages that can't be touched; they take address space alone
OUTER_GUARD = 64 << 20  # before the first and behind the last
PROT_NONE = 0

_libc = ctypes.CDLL(None, use_errno=True)


class Memory:
    """Storages of the given sizes.

    Args:
        sizes: in bytes.
        read_only: how many of them, from the first, are inputs.
    """

    def __init__(self, sizes: Sequence[int], read_only: int) -> None:
        self._read_only = read_only
        self._used = False
        self._spans: list[tuple[int, int, int, int]] = []  # of pages and storage: start, start, end, end
        at = OUTER_GUARD
        for size in sizes:
            length = 2 * REDZONE + max(1, -(-size // PAGE)) * PAGE
            start = at + REDZONE
            self._spans.append((at, start, start + size, at + length))
            at += length + GUARD
        self._map = mmap.mmap(-1, at + OUTER_GUARD, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._bytes: Array = np.frombuffer(self._map, dtype=np.uint8)
        self._address = self._bytes.ctypes.data
        self._protect(0, OUTER_GUARD, PROT_NONE)
        for *_, last in self._spans:
            self._protect(last, GUARD, PROT_NONE)
        self._protect(at, OUTER_GUARD, PROT_NONE)

    def renew(self, inputs: Sequence[Array]) -> None:
        """Fill the inputs with these bytes; everything else with poison, but only the first time.

        Later runs find what the run before left, as an allocator hands out old memory: a kernel that counts
        on a flag of its last run shows. The caller poisons the outputs anew.
        """
        rng = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))
        for index, (first, start, end, last) in enumerate(self._spans):
            if index < self._read_only:
                self._protect(first, last - first, mmap.PROT_READ | mmap.PROT_WRITE)
            self._bytes[first:start] = 0xFF
            self._bytes[end:last] = 0xFF
            if index < self._read_only:
                self._bytes[start:end] = inputs[index]
                self._protect(first, last - first, mmap.PROT_READ)
            elif not self._used:
                self._bytes[start:end] = _poison(end - start, rng)
        self._used = True

    def damage(self) -> int | None:
        """Index of a storage beside which something was written, else None."""
        for index, (first, start, end, last) in enumerate(self._spans):
            if not (self._bytes[first:start] == 0xFF).all() or not (self._bytes[end:last] == 0xFF).all():
                return index
        return None

    def tensor(self, view: View) -> torch.Tensor:
        """A view as a tensor over the storage itself."""
        _, start, end, _ = self._spans[view.storage]
        dtype: torch.dtype = getattr(torch, view.dtype)
        count = (end - start) // dtype.itemsize
        if 0 in view.shape or count == 0:
            return torch.empty(view.shape, dtype=dtype)
        flat = torch.frombuffer(self._map, dtype=dtype, count=count, offset=start)
        return flat.as_strided(view.shape, view.strides, view.offset)

    def _protect(self, offset: int, length: int, rights: int) -> None:
        if _libc.mprotect(ctypes.c_void_p(self._address + offset), ctypes.c_size_t(length), rights) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")


def _poison(size: int, rng: np.random.Generator) -> Array:
    """Bytes that are NaN to every floating type, and large numbers to integers."""
    words = rng.integers(1, 16, size // 2 + 1, dtype=np.uint16) | np.uint16(0x7FF0)
    words |= rng.integers(0, 2, len(words), dtype=np.uint16) << np.uint16(15)
    return words.view(np.uint8)[:size]
