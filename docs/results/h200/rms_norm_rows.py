"""RMS norm of each row with a gain: whole rows in registers, each element read once and written once.

Written for kernel-evo from the definition. One program takes TILE elements: one long row or several short
ones that share the gain, which is loaded before the sum of squares is known. Sums in float32. A row beyond
LONGEST is read twice, in chunks; the second pass goes backwards, over what the cache still holds. With
STREAM at 1 what passes through is the first to leave the caches, at 2 inputs go past the first of them.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-6)
CONFIG = {
    "TILE": 4096,
    "STREAM": 0,
    "num_warps": 2,
    "maxnreg": 128,
}
SPACE = {
    "TILE": [1024, 2048, 4096, 8192, 16384],
    "STREAM": [0, 1, 2],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "maxnreg": [64, 96, 128, 168, 255],
}
LONGEST = 16384


@triton.jit
def norm_rows(x, weight, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, STREAM: tl.constexpr):
    FIRST: tl.constexpr = "evict_first" if STREAM == 1 else ""
    PAST: tl.constexpr = ".cg" if STREAM == 2 else ""
    first = tl.program_id(0) * ROWS
    x += first.to(tl.int64) * n
    out += first.to(tl.int64) * n
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (column < n) & (row < rows - first)
    at = row * n + column
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy=FIRST, cache_modifier=PAST).to(tl.float32)
    gain = tl.load(weight + column, mask=column < n, eviction_policy="evict_first").to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) * (1.0 / n) + EPS)
    tl.store(out + at, value * scale[:, None] * gain, mask=inside, eviction_policy=FIRST)


@triton.jit
def norm_long_rows(x, weight, out, n, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + start + lane, mask=lane < n - start, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    last = (n - 1) // BLOCK * BLOCK
    for back in range(0, n, BLOCK):
        start = last - back
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        gain = tl.load(weight + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        tl.store(out + start + lane, value * scale * gain, mask=inside, cache_modifier=".cs")


def kernel_function(x, weight):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    warps = CONFIG["num_warps"]
    if block > LONGEST:
        norm_long_rows[(rows,)](x, weight, out, n, BLOCK=CONFIG["TILE"], num_warps=warps, maxnreg=CONFIG["maxnreg"])
        return out
    group = max(1, CONFIG["TILE"] // block)
    grid = (triton.cdiv(rows, group),)
    stream = CONFIG["STREAM"]
    norm_rows[grid](x, weight, out, rows, n, ROWS=group, BLOCK=block, STREAM=stream, num_warps=warps, maxnreg=CONFIG["maxnreg"])
    return out
