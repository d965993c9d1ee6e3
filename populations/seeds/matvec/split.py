"""Matrix times vector: several rows by a slice of the columns a program, partial sums merged after.

Written for kernel-evo from the definition. A program reads its piece of the vector once for ROWS rows, adds
products lane by lane in float32 and reduces when its slice ends, so threads exchange nothing in the loop.
The matrix streams through, the vector stays in L2. SLICE columns a program fill the device where rows are
few; a second small launch adds the slices' sums in a fixed order.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "ROWS": 4,
    "BLOCK": 2048,
    "SLICE": 65536,
    "STAGES": 1,
    "num_warps": 8,
}
SPACE = {
    "ROWS": [1, 2, 4, 8, 16],
    "BLOCK": [512, 1024, 2048, 4096, 8192],
    "SLICE": [8192, 16384, 32768, 65536, 131072, 262144],
    "STAGES": [1, 2, 3, 4],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def products(
    a, b, partial, m, k,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, SLICE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * ROWS
    begin = tl.program_id(1) * SLICE
    row = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    existing = row[:, None] < m - first
    a += first.to(tl.int64) * k + row[:, None].to(tl.int64) * k + column
    b += column
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(begin, tl.minimum(begin + SLICE, k), BLOCK, num_stages=STAGES):
        inside = column < k - start
        left = tl.load(a + start, mask=inside & existing, other=0.0, eviction_policy="evict_first")
        right = tl.load(b + start, mask=inside, other=0.0, eviction_policy="evict_last")
        sums += left.to(tl.float32) * right.to(tl.float32)
    at = tl.program_id(1) * m + first + row
    tl.store(partial + at, tl.sum(sums, axis=1), mask=row < m - first)


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
    products[(triton.cdiv(m, CONFIG["ROWS"]), slices)](a, b, partial, m, k, **CONFIG)
    padded = triton.next_power_of_2(slices)
    merged[(triton.cdiv(m, 64),)](partial, out, m, slices, ROWS=64, SLICES=padded, num_warps=4)
    return out
