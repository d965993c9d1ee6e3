"""Residual add and RMS norm of each row: whole rows in registers, two reads and two writes an element.

Written for kernel-evo from the definition. One program takes TILE elements: one long row or several short
ones that share the gain, which is loaded last, to spare registers. The sum x + residual is stored at once
and kept in float32 for the norm. A row beyond LONGEST is summed in chunks; the second pass adds the inputs
again, backwards, over what the cache still holds. With STREAM at 1 what
passes through is the first to leave the caches, at 2 inputs go past the first of them.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-6)
CONFIG = {
    "TILE": 8192,
    "STREAM": 0,
    "num_warps": 32,
}
SPACE = {
    "TILE": [1024, 2048, 4096, 8192, 16384],
    "STREAM": [0, 1, 2],
    "num_warps": [1, 2, 4, 8, 16, 32],
}
LONGEST = 16384


@triton.jit
def norm_rows(
    x, residual, weight, normed, total, rows, n,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STREAM: tl.constexpr,
):  # fmt: skip
    FIRST: tl.constexpr = "evict_first" if STREAM == 1 else ""
    PAST: tl.constexpr = ".cg" if STREAM == 2 else ""
    first = tl.program_id(0) * ROWS
    begin = first.to(tl.int64) * n
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (column < n) & (row < rows - first)
    at = row * n + column
    value = tl.load(x + begin + at, mask=inside, other=0.0, eviction_policy=FIRST, cache_modifier=PAST)
    other = tl.load(residual + begin + at, mask=inside, other=0.0, eviction_policy=FIRST, cache_modifier=PAST)
    value = value.to(tl.float32) + other.to(tl.float32)
    tl.store(total + begin + at, value, mask=inside, eviction_policy=FIRST)
    gain = tl.load(weight + column, mask=column < n, cache_modifier=".cg").to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / n + EPS)
    tl.store(normed + begin + at, value * scale[:, None] * gain, mask=inside, eviction_policy=FIRST)


@triton.jit
def norm_long_rows(x, residual, weight, normed, total, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = begin + start
        inside = lane < n - start
        value = tl.load(x + at + lane, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(residual + at + lane, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + at + lane, value, mask=inside)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    last = (n - 1) // BLOCK * BLOCK
    for back in range(0, n, BLOCK):
        start = last - back
        at = begin + start
        inside = lane < n - start
        value = tl.load(x + at + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        value += tl.load(residual + at + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        gain = tl.load(weight + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        tl.store(normed + at + lane, value * scale * gain, mask=inside)


def kernel_function(x, residual, weight):
    n = x.shape[-1]
    rows = x.numel() // n
    normed = torch.empty_like(x)
    total = torch.empty_like(x)
    tensors = (x, residual, weight, normed, total)
    block = triton.next_power_of_2(n)
    warps = CONFIG["num_warps"]
    if block > LONGEST:
        norm_long_rows[(rows,)](*tensors, n, BLOCK=CONFIG["TILE"], num_warps=warps)
        return normed, total
    group = max(1, CONFIG["TILE"] // block)
    norm_rows[(triton.cdiv(rows, group),)](
        *tensors, rows, n, ROWS=group, BLOCK=block, STREAM=CONFIG["STREAM"], num_warps=warps
    )
    return normed, total
