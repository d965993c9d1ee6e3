"""Argument sets in shared memory: the judge fills and reads them, the runner only sees its own view.

All read-only arguments (inputs and parameters) of all sets lie in one anonymous file, all outputs in
another. Each argument owns whole pages and ends, up to 64-byte alignment, at the end of its last page, where
the runner has a guard page. What is left of its pages on either side is a redzone that the judge fills and
checks.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import torch

from fitness.card import TensorSpec
from populations.dtypes import ITEM_BYTES

ALIGNMENT = 64
BLOCK = 1 << 20  # bytes of prepared poison; outputs are tiled with a window into it
SPARE = 1 << 16  # how far that window can move
_QUIET_NAN = {
    "float16": (np.uint16, 0x7E00),
    "bfloat16": (np.uint16, 0x7FC0),
    "float32": (np.uint32, 0x7FC00000),
    "float64": (np.uint64, 0x7FF8000000000000),
}
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Slot:
    """Where one argument lies in its set's part of the file.

    Attributes:
        offset: of its first page.
        length: of its pages together.
        start: of the buffer in its pages.
    """

    spec: TensorSpec
    offset: int
    length: int
    start: int

    @property
    def end(self) -> int:
        """End of the buffer in its pages; less than 64 bytes before their end."""
        return self.start + self.spec.nbytes


class ArgumentSets:
    """``count`` sets of all arguments of a kernel, in memory that the judge shares with a runner.

    A context manager; tensors handed out must not be used after it is left.

    Args:
        arguments: the entry's pointers in order.
        read_only: how many of them, from the first, a kernel may only read.
        count: number of sets.
    """

    def __init__(self, arguments: Sequence[TensorSpec], read_only: int, count: int) -> None:
        self.arguments = tuple(arguments)
        self.read_only = read_only
        self.count = count
        self.slots, self.strides = _layout(self.arguments, read_only)
        self._files = tuple(_file(max(stride * count, mmap.PAGESIZE)) for stride in self.strides)
        shared = mmap.MAP_SHARED | mmap.MAP_POPULATE
        self._maps = tuple(mmap.mmap(file, 0, flags=shared) for file in self._files)
        rng = np.random.default_rng(int.from_bytes(os.urandom(8)))
        self._redzone: Bytes = rng.integers(0, 256, mmap.PAGESIZE + ALIGNMENT, dtype=np.uint8)
        self._poison = {spec.dtype: _poison(spec.dtype, rng) for spec in self.arguments[read_only:]}
        self._window = [0] * count  # where in the poison block each set's last poison began
        for k in range(count):
            self._fence_inputs(k)
            self.poison(k, k)

    def inputs(self, k: int) -> list[torch.Tensor]:
        """Set ``k``'s inputs and parameters as tensors over the shared memory; write them to fill the set.

        The runner's mapping of them cannot be made writable, so no kernel changes them and no comparison with
        a copy is needed: a kernel that tries dies of it.
        """
        return [self._tensor(k, slot, 0) for slot in self.slots[: self.read_only]]

    def outputs(self, k: int) -> list[torch.Tensor]:
        """Set ``k``'s outputs, in the same way. A poisoned bool holds bytes other than 0 and 1."""
        return [self._tensor(k, slot, 1) for slot in self.slots[self.read_only :]]

    def poison(self, k: int, rng_seed: int) -> None:
        """Fill set ``k``'s outputs with poison and arm their redzones, at about the cost of a copy.

        Poison is NaN with random payloads for floating types, random bytes for integers, bytes above 1 for
        bool. Another seed gives other poison.
        """
        window = (rng_seed * 0x9E3779B97F4A7C15 >> 20) % (SPARE // 8) * 8
        self._window[k] = window
        for slot in self.slots[self.read_only :]:
            pages = self._pages(k, slot, 1)
            block = self._poison[slot.spec.dtype][window : window + BLOCK]
            body = pages[slot.start : slot.end]
            for at in range(0, len(body), BLOCK):
                piece = body[at : at + BLOCK]
                piece[:] = block[: len(piece)]
            pages[: slot.start] = self._redzone[: slot.start]
            pages[slot.end :] = self._redzone[: slot.length - slot.end]

    def inherit(self, k: int) -> None:
        """Nothing to do: a library's memory is its own and outlives a call anyway."""

    def damage(self, first: int, count: int = 1) -> str | None:
        """What is wrong with ``count`` sets whatever their values, as a phrase; None where nothing is."""
        for k in range(first, first + count):
            if beside := self.redzone_damage(k):
                return f"memory beside {beside} was overwritten"
            if left := self.poison_left(k):
                return f"output {left} is not written everywhere"
        return None

    def redzone_damage(self, k: int) -> str | None:
        """Name of an output of set ``k`` beside which something was written, else None."""
        for slot in self.slots[self.read_only :]:
            pages = self._pages(k, slot, 1)
            before, after = pages[: slot.start], pages[slot.end :]
            if not np.array_equal(before, self._redzone[: len(before)]):
                return slot.spec.name
            if not np.array_equal(after, self._redzone[: len(after)]):
                return slot.spec.name
        return None

    def poison_left(self, k: int) -> str | None:
        """Name of an output of set ``k`` where poison still stands, else None.

        For floating types an element must hold the poison's exact bits, for bool a byte above 1. An integer
        may equal its poison by chance, so integer outputs are never named; their values tell.
        """
        for slot in self.slots[self.read_only :]:
            dtype = slot.spec.dtype
            body = self._pages(k, slot, 1)[slot.start : slot.end]
            if dtype == "bool" and body.size and int(body.max()) > 1:
                return slot.spec.name
            if dtype not in _QUIET_NAN:
                continue
            unit = _QUIET_NAN[dtype][0]
            block = self._poison[dtype][self._window[k] : self._window[k] + BLOCK].view(unit)
            values = body.view(unit)
            for at in range(0, len(values), len(block)):
                piece = values[at : at + len(block)]
                if bool((piece == block[: len(piece)]).any()):
                    return slot.spec.name
        return None

    def read_only_file(self) -> int:
        """A new descriptor of the inputs' file that can only read; the caller closes it."""
        return os.open(f"/proc/self/fd/{self._files[0]}", os.O_RDONLY | os.O_CLOEXEC)

    def outputs_file(self) -> int:
        """The descriptor of the outputs' file; it stays this object's."""
        return self._files[1]

    def header(self, cores: int, memory: int) -> bytes:
        """The layout and the shapes as the runner reads them."""
        words = [cores, memory, self.count, len(self.slots), self.read_only, *self.strides]
        for slot in self.slots:
            words += [slot.offset, slot.length, slot.start]
        words += [extent for spec in self.arguments for extent in spec.shape]
        return struct.pack(f"={len(words)}q", *words)

    def close(self) -> None:
        """Give the memory back, as soon as no tensor looks at it any more."""
        for file in self._files:
            os.close(file)
        for shared in self._maps:
            try:
                shared.close()
            except BufferError:
                continue  # a tensor still looks at it: unmapped when that one goes
        self._files, self._maps = (), ()

    def __enter__(self) -> ArgumentSets:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pages(self, k: int, slot: Slot, file: int) -> Bytes:
        at = k * self.strides[file] + slot.offset
        return np.frombuffer(self._maps[file], dtype=np.uint8, count=slot.length, offset=at)

    def _tensor(self, k: int, slot: Slot, file: int) -> torch.Tensor:
        spec = slot.spec
        dtype: torch.dtype = getattr(torch, spec.dtype)
        if spec.nbytes == 0:
            return torch.empty(spec.shape, dtype=dtype)
        at = k * self.strides[file] + slot.offset + slot.start
        count = spec.nbytes // ITEM_BYTES[spec.dtype]
        return torch.frombuffer(self._maps[file], dtype=dtype, count=count, offset=at).view(spec.shape)

    def _fence_inputs(self, k: int) -> None:
        """All ones beside inputs: NaN to any float that reads there, so a stray read shows in the output."""
        for slot in self.slots[: self.read_only]:
            pages = self._pages(k, slot, 0)
            pages[: slot.start] = 0xFF
            pages[slot.end :] = 0xFF


def _layout(arguments: tuple[TensorSpec, ...], read_only: int) -> tuple[tuple[Slot, ...], tuple[int, int]]:
    """Slots of all arguments, and how many bytes a set takes in either file."""
    slots = []
    ends = [0, 0]
    for i, spec in enumerate(arguments):
        length = max(1, -(-spec.nbytes // mmap.PAGESIZE)) * mmap.PAGESIZE
        start = (length - spec.nbytes) // ALIGNMENT * ALIGNMENT
        file = int(i >= read_only)
        slots.append(Slot(spec, ends[file], length, start))
        ends[file] += length
    return tuple(slots), (ends[0], ends[1])


def _file(size: int) -> int:
    file = os.memfd_create("arguments", os.MFD_CLOEXEC)
    os.ftruncate(file, size)
    return file


def _poison(dtype: str, rng: np.random.Generator) -> Bytes:
    size = BLOCK + SPARE
    if dtype == "bool":
        return rng.integers(2, 256, size, dtype=np.uint8)
    noise: Bytes = rng.integers(0, 256, size, dtype=np.uint8)
    if dtype not in _QUIET_NAN:
        return noise
    unit, quiet = _QUIET_NAN[dtype]
    words = noise.view(unit) | unit(quiet)
    payload = unit((quiet & -quiet) - 1)
    honest = (words & payload == 0) | (words & payload == payload)  # the NaNs that processors make of 0/0
    poison: Bytes = np.where(honest, words ^ unit(0x2A), words).view(np.uint8)
    return poison
