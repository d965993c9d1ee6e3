"""Matrix times vector: several rows by a slice of the columns a program, partial sums merged after.

Written for kernel-evo from the definition. A program reads its piece of the vector once for ROWS rows and
adds the products of 16 neighbouring bytes before it adds them to its sums, in float32: few registers, and
threads exchange nothing in the loop. With STAGES above 1 the matrix is copied to shared memory that many
steps ahead. Programs that follow each other read the same slice of the vector. Where rows are few, slices of
SLICE columns fill the device; a second small launch adds their sums in a fixed order. With STREAM at 1 the
matrix is the first to leave the caches, at 2 it goes past the first of them.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "ROWS": 4,
    "BLOCK": 4096,
    "SLICE": 131072,
    "STAGES": 5,
    "STREAM": 0,
    "num_warps": 8,
}
SPACE = {
    "ROWS": [1, 2, 4, 8, 16],
    "BLOCK": [512, 1024, 2048, 4096, 8192],
    "SLICE": [8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576],
    "STAGES": [1, 2, 3, 4, 5, 6],
    "STREAM": [0, 1, 2],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def products(
    a, b, partial, m, k, ROWS: tl.constexpr, BLOCK: tl.constexpr, SLICE: tl.constexpr,
    STAGES: tl.constexpr, STREAM: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    FIRST: tl.constexpr = "evict_first" if STREAM == 1 else ""
    PAST: tl.constexpr = ".cg" if STREAM == 2 else ""
    first = tl.program_id(0) * ROWS
    begin = tl.program_id(1) * SLICE
    column = tl.arange(0, BLOCK // WIDE)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    a += first.to(tl.int64) * k + column
    b += column
    long = tl.cast(k, tl.int64)
    sums = ()
    for _ in tl.static_range(ROWS):
        sums += (tl.zeros([BLOCK // WIDE], tl.float32),)
    for start in tl.range(begin, tl.minimum(begin + SLICE, k), BLOCK, num_stages=STAGES, disable_licm=True):
        inside = column < k - start
        right = tl.load(b + start, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        added = ()
        for row in tl.static_range(ROWS):
            end = tl.where(row < m - first, k - start, 0)  # a row that is not there has no columns
            at = a + start + row * long
            left = tl.load(at, mask=column < end, other=0.0, eviction_policy=FIRST, cache_modifier=PAST)
            added += (sums[row] + tl.sum(left.to(tl.float32) * right, axis=1),)
        sums = added
    partial += tl.program_id(1) * m + first
    for row in tl.static_range(ROWS):
        tl.store(partial + row, tl.sum(sums[row], axis=0), mask=row < m - first)


@triton.jit
def merged(partial, out, m, slices, ROWS: tl.constexpr, SLICES: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    slice = tl.arange(0, SLICES)[:, None]
    inside = (slice < slices) & (row[None, :] < m)
    part = tl.load(partial + slice * m + row[None, :], mask=inside, other=0.0)
    tl.store(out + row, tl.sum(part, axis=0), mask=row < m)


def kernel_function(a, b):
    m, k = a.shape
    slices = triton.cdiv(k, CONFIG["SLICE"])
    out = torch.empty((m, 1), dtype=a.dtype, device=a.device)
    partial = torch.empty((slices, m), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, CONFIG["ROWS"]), slices)
    wide = 16 // a.element_size()  # elements of one 16-byte load
    products[grid](a, b, partial, m, k, WIDE=wide, **CONFIG)
    padded = triton.next_power_of_2(slices)
    merged[(triton.cdiv(m, 16),)](partial, out, m, slices, ROWS=16, SLICES=padded, num_warps=4)
    return out
