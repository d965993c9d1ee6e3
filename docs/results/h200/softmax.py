"""Softmax over the last dimension: whole rows in registers, each element read once and written once.

Written for kernel-evo from the definition. One program takes TILE elements: one long row or several short
ones. Maximum, exponential and sum are taken in float32 and the row is scaled by the reciprocal of its sum.
A row beyond LONGEST is read twice, in chunks: every group of a few neighbouring elements keeps a running
maximum and sum of its own, so that threads exchange nothing until the row ends; the second pass goes
backwards, over what the cache still holds. exp2, as it flushes tiny results, is one instruction; exp is
four.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
CONFIG = {
    "TILE": 8192,
    "num_warps": 16,
    "maxnreg": 128,
}
SPACE = {
    "TILE": [1024, 2048, 4096, 8192, 16384],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "maxnreg": [64, 96, 128, 168, 255],
}
LONGEST = 16384


@triton.jit
def softmax_rows(x, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    x += first.to(tl.int64) * n
    out += first.to(tl.int64) * n
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (column < n) & (row < rows - first)
    at = row * n + column
    value = tl.load(x + at, mask=inside, other=float("-inf"), cache_modifier=".cg").to(tl.float32)
    weight = tl.exp2((value - tl.max(value, axis=1)[:, None]) * LOG2_E)
    scale = 1.0 / tl.sum(weight, axis=1)
    tl.store(out + at, weight * scale[:, None], mask=inside, cache_modifier=".cs")


@triton.jit
def softmax_long_rows(x, out, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK // WIDE)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    largest = tl.full([BLOCK // WIDE], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK // WIDE], tl.float32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + start + lane, mask=lane < n - start, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, axis=1))
        base = tl.where(larger == float("-inf"), 0.0, larger)  # nothing but -inf so far
        total *= tl.exp2((largest - base) * LOG2_E)
        total += tl.sum(tl.exp2((value - base[:, None]) * LOG2_E), axis=1)
        largest = larger
    top = tl.max(largest, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp2((largest - top) * LOG2_E), axis=0)
    last = (n - 1) // BLOCK * BLOCK
    for back in range(0, n, BLOCK):
        start = last - back
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        value = tl.exp2((value - top) * LOG2_E) * scale
        tl.store(out + start + lane, value, mask=inside, cache_modifier=".cs")


def kernel_function(x):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    warps = CONFIG["num_warps"]
    if block > LONGEST:
        wide = 16 // x.element_size()  # one load of 16 bytes
        softmax_long_rows[(rows,)](x, out, n, BLOCK=CONFIG["TILE"], WIDE=wide, num_warps=warps, maxnreg=CONFIG["maxnreg"])
        return out
    group = max(1, CONFIG["TILE"] // block)
    softmax_rows[(triton.cdiv(rows, group),)](x, out, rows, n, ROWS=group, BLOCK=block, num_warps=warps, maxnreg=CONFIG["maxnreg"])
    return out
