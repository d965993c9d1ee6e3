"""What a kernel is made of, read from its binary: kept with the verdict, for notebooks and archives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CLASSES = {
    "global_load": "loads from global memory into registers",
    "global_store": "stores from registers to global memory",
    "atomic": "atomic updates of global memory",
    "async_copy": "copies between global and shared memory: LDGSTS, and TMA",
    "shared": "loads, stores and atomics of shared memory and tensor memory",
    "local": "loads and stores of local memory: spilled registers, arrays that are indexed",
    "tensor": "matrix products",
    "fma": "float32 adds, multiplies and fused multiply-adds",
    "half": "the same of packed float16 and bfloat16",
    "double": "float64 arithmetic",
    "special": "exponentials, logarithms, reciprocals, roots, sines: MUFU",
    "comparison": "comparisons, minima, maxima and choices of floats",
    "conversion": "from one number type to another",
    "integer": "integers, bits and addresses",
    "exchange": "between the threads of a warp: shuffles, votes, reductions",
    "move": "copies of registers, constants and special registers",
    "control": "branches, calls, ends",
    "barrier": "barriers, fences and waits",
    "other": "what is in no class above",
}
LIMITERS = ("warps", "blocks", "registers", "shared memory")


@dataclass(frozen=True)
class KernelProfile:
    """Static facts of one device function as a launch uses it. None: not known.

    Attributes:
        name: of the function.
        launches: how often one call of the entry launches it.
        warps: of one block (program).
        registers: of one thread.
        spill_bytes: of spill loads and stores in the code.
        shared_bytes: of one block.
        blocks: that fit one multiprocessor at a time.
        occupancy: their warps as a share of what a multiprocessor can hold: a bound, whatever the grid.
        limiter: what sets the bound, one of ``LIMITERS``.
        instructions: in the code, each counted once however often it runs, without padding.
        mix: share of each of ``CLASSES`` in them; only classes that occur. Sums to 1.
        load_bits, store_bits: width of an access in bits → how many global loads (asynchronous copies by
            threads included) and global stores have it.
    """

    name: str
    launches: int
    warps: int | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    blocks: int | None = None
    occupancy: float | None = None
    limiter: str | None = None
    instructions: int | None = None
    mix: dict[str, float] | None = None
    load_bits: dict[int, int] | None = None
    store_bits: dict[int, int] | None = None


def main_kernel(profile: Sequence[KernelProfile]) -> KernelProfile | None:
    """The function with the most instructions, for tables with one row a candidate. None: there is none."""
    return max(profile, key=lambda one: one.instructions or 0, default=None)
