"""Argument sets in device memory. What a kernel must not touch lies around each buffer and is checked.

    guard │ buffer │ guard

Device code can write anywhere, so inputs are sealed before a run: a copy, or of huge ones a checksum with
secret weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from fitness.card import TensorSpec
from fitness.judge.place import place
from populations.dtypes import ITEM_BYTES

GUARD = 4096  # bytes on either side; a multiple of the alignment that PyTorch's allocator gives
COPIED_BYTES = 1 << 30  # inputs up to this size are compared byte for byte
ROW_BYTES = 8192  # of larger inputs, as a checksum takes them
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_QUIET_NAN = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8 << 48}


class Buffer:
    """Bytes on the device between two guards."""

    def __init__(self, nbytes: int, guard: Tensor) -> None:
        padded = -(-max(nbytes, 1) // 16) * 16
        self._all = torch.empty(GUARD + padded + GUARD, dtype=torch.uint8, device=guard.device)
        self._all[:GUARD] = guard
        self._all[-GUARD:] = guard
        self.data = self._all[GUARD : GUARD + nbytes]
        self.guards = (self._all[:GUARD], self._all[-GUARD:])

    def typed(self, spec: TensorSpec) -> Tensor:
        """The bytes as the tensor that a spec describes."""
        dtype: torch.dtype = getattr(torch, spec.dtype)
        return self.data.view(dtype).view(spec.shape)


class DeviceSets:
    """``count`` sets of all arguments of a kernel in device memory (see fitness.judge.rig.Sets).

    Args:
        arguments: the entry's arguments.
        read_only: how many of them, from the first, a kernel may only read.
        count: number of sets.
    """

    def __init__(self, arguments: Sequence[TensorSpec], read_only: int, count: int) -> None:
        self.arguments = tuple(arguments)
        self.read_only = read_only
        self.count = count
        self._guard = torch.randint(0, 256, (GUARD,), dtype=torch.uint8, device=place())
        self.buffers = [[Buffer(spec.nbytes, self._guard) for spec in self.arguments] for _ in range(count)]
        self._scratch: list[list[Buffer]] = [[] for _ in range(count)]
        self._seals: list[list[Tensor]] = [[] for _ in range(count)]
        self._weights = _odd(0)  # of rows in a checksum: sums wrap around
        self._patterns: list[list[int]] = [[] for _ in range(count)]  # what outputs were filled with

    def inputs(self, k: int) -> list[Tensor]:
        """See Sets."""
        return self._typed(k, 0, self.read_only)

    def outputs(self, k: int) -> list[Tensor]:
        """See Sets."""
        return self._typed(k, self.read_only, len(self.arguments))

    def scratch(self, k: int, sizes: Sequence[int]) -> list[Buffer]:
        """Set ``k``'s scratch buffers, poisoned with its outputs from now on; replaces earlier ones."""
        if [buffer.data.numel() for buffer in self._scratch[k]] != list(sizes):
            self._scratch[k] = [Buffer(size, self._guard) for size in sizes]
        for buffer in self._scratch[k]:
            buffer.data.fill_(0xFF)
        return self._scratch[k]

    def poison(self, k: int, rng_seed: int) -> None:
        """See Sets: NaN with a random payload for floats, odd bytes for others; scratch is spoilt too."""
        rng = Random(f"poison/{rng_seed}")
        self._patterns[k] = [_payload(spec.dtype, rng) for spec in self.arguments[self.read_only :]]
        for words, pattern in zip(self._words(k), self._patterns[k], strict=True):
            words.fill_(pattern)
        for buffer in self._scratch[k]:
            buffer.data.fill_(rng.choice((0xFF, 0x7F)))
        self._seals[k] = [self._seal(buffer.data, keep=True) for buffer in self.buffers[k][: self.read_only]]

    def inherit(self, k: int) -> None:
        """See Sets."""
        for old, new in zip(self._scratch[k - 1], self._scratch[k], strict=True):
            new.data.copy_(old.data)

    def damage(self, first: int, count: int = 1) -> str | None:
        """See Sets."""
        ks = range(first, first + count)
        found = torch.stack([torch.stack(self._flags(k)) for k in ks]).tolist()  # waits for the device once
        told = (self._told(k, flags) for k, flags in zip(ks, found, strict=True))
        return next(filter(None, told), None)

    def _flags(self, k: int) -> list[Tensor]:
        """Whether something beside set ``k`` was overwritten, each output left, each input changed."""
        written = self.arguments[self.read_only :]
        guards = torch.stack([guard for buffer in self._all(k) for guard in buffer.guards])
        flags = [(guards != self._guard).any()]
        for spec, words, pattern in zip(written, self._words(k), self._patterns[k], strict=True):
            left = words == pattern if spec.dtype in _QUIET_NAN else words > 1
            flags.append(left.any() & (spec.dtype in (*_QUIET_NAN, "bool")))
        for buffer, seal in zip(self.buffers[k], self._seals[k], strict=False):
            flags.append((_words_of(self._seal(buffer.data)) != _words_of(seal)).any())
        return flags

    def _told(self, k: int, flags: Sequence[bool]) -> str | None:
        read, written = self.arguments[: self.read_only], self.arguments[self.read_only :]
        if flags[0]:
            return f"memory beside {self._beside(k)} was overwritten"
        for spec, wrong in zip((*written, *read), flags[1:], strict=True):
            if wrong and spec in written:
                return f"output {spec.name} is not written everywhere"
            if wrong:
                return f"input {spec.name} was changed"
        return None

    def close(self) -> None:
        """See Sets."""
        self.buffers, self._scratch, self._seals = [], [], []

    def _all(self, k: int) -> list[Buffer]:
        return [*self.buffers[k], *self._scratch[k]]

    def _typed(self, k: int, start: int, stop: int) -> list[Tensor]:
        pairs = zip(self.buffers[k][start:stop], self.arguments[start:stop], strict=True)
        return [buffer.typed(spec) for buffer, spec in pairs]

    def _words(self, k: int) -> list[Tensor]:
        """Set ``k``'s outputs as whole numbers of their width."""
        pairs = zip(self.buffers[k], self.arguments, strict=True)
        return [b.data.view(_WORDS[ITEM_BYTES[spec.dtype]]) for b, spec in list(pairs)[self.read_only :]]

    def _seal(self, data: Tensor, *, keep: bool = False) -> Tensor:
        """What tells whether bytes were changed: the bytes themselves, or a checksum of very many.

        Args:
            data: the bytes.
            keep: whether they have to be copied.
        """
        if data.numel() <= COPIED_BYTES:
            return data.clone() if keep else data
        whole = data.numel() // ROW_BYTES * ROW_BYTES
        rows = data[:whole].view(torch.int64).view(-1, ROW_BYTES // 8)
        if len(self._weights) < len(rows):
            self._weights = _odd(len(rows))
        return torch.cat([(rows * self._weights[: len(rows), None]).sum(0), data[whole:].long()])

    def _beside(self, k: int) -> str:
        names = [spec.name for spec in self.arguments] + ["scratch"] * len(self._scratch[k])
        for name, buffer in zip(names, self._all(k), strict=True):
            if any(not torch.equal(guard, self._guard) for guard in buffer.guards):
                return name
        return "a buffer"


def _payload(dtype: str, rng: Random) -> int:
    """A pattern that no honest result has: a NaN with a random payload, or bytes above 1."""
    bits = 8 * ITEM_BYTES[dtype]
    if dtype not in _QUIET_NAN:
        return rng.randrange(2, 128)
    mantissa = {16: 6 if dtype == "bfloat16" else 9, 32: 22, 64: 51}[bits]
    return _QUIET_NAN[dtype] | rng.randrange(1, (1 << mantissa) - 1)


def _odd(count: int) -> Tensor:
    """Random odd numbers of 64 bits."""
    drawn = torch.randint(-(1 << 62), 1 << 62, (count,), dtype=torch.int64, device=place())
    return 2 * drawn + 1


def _words_of(data: Tensor) -> Tensor:
    """Bytes as the widest whole numbers that divide them: comparing those is quicker."""
    for dtype in (torch.int64, torch.int32, torch.int16):
        if data.dtype == torch.uint8 and data.numel() % dtype.itemsize == 0:
            return data.view(dtype)
    return data
