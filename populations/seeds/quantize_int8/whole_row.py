"""Symmetric int8 quantisation with one scale a row: whole rows in registers, read once, written once.

Written for kernel-evo from the definition. The quotient is a product with 127 / largest, one correctly
rounded division a row: at most two roundings from the exact quotient. Rows of very small numbers are lifted
by a power of two first, so that the reciprocal is finite. Adding and subtracting 1.5 * 2^23 rounds to the
nearest whole number, ties to even. A row beyond LONGEST is read twice, in chunks.
"""

import torch
import triton
import triton.language as tl

ROUNDING = tl.constexpr(12582912.0)  # 1.5 * 2^23: float32 numbers of this size are whole
LIFT = tl.constexpr(1.8446744073709552e19)  # 2^64
CONFIG = {
    "TILE": 8192,
    "num_warps": 8,
}
SPACE = {
    "TILE": [1024, 2048, 4096, 8192, 16384],
    "num_warps": [1, 2, 4, 8, 16, 32],
}
LONGEST = 16384


@triton.jit
def factors(largest):
    """The scale, what to lift the row by, and the reciprocal of the lifted scale."""
    lift = tl.where(largest < 1e-30, LIFT, 1.0)
    divisor = tl.where(largest > 0, largest, 1.0)
    scale = tl.where(largest > 0, tl.div_rn(largest, tl.full(largest.shape, 127.0, tl.float32)), 1.0)
    return scale, lift, tl.div_rn(tl.full(largest.shape, 127.0, tl.float32), divisor * lift)


@triton.jit
def quantise_rows(x, out, scales, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    x += first.to(tl.int64) * n
    out += first.to(tl.int64) * n
    row = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    inside = (column < n) & (row[:, None] < rows - first)
    at = row[:, None] * n + column
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    scale, lift, inverse = factors(tl.max(tl.abs(value), axis=1))
    tl.store(scales + first + row, scale, mask=row < rows - first)
    whole = value * lift[:, None] * inverse[:, None] + ROUNDING - ROUNDING
    tl.store(out + at, whole.to(tl.int8), mask=inside, cache_modifier=".cs")


@triton.jit
def quantise_long_rows(x, out, scales, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    largest = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + begin + start + lane, mask=lane < n - start, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(value))
    scale, lift, inverse = factors(tl.max(largest, axis=0, keep_dims=True))
    tl.store(scales + tl.program_id(0) + tl.arange(0, 1), scale)
    last = (n - 1) // BLOCK * BLOCK
    for back in range(0, n, BLOCK):
        start = last - back
        inside = lane < n - start
        value = tl.load(x + begin + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        whole = value * lift * inverse + ROUNDING - ROUNDING
        tl.store(out + begin + start + lane, whole.to(tl.int8), mask=inside, cache_modifier=".cs")


def kernel_function(x):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x, dtype=torch.int8)
    scales = torch.empty((*x.shape[:-1], 1), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(n)
    warps = CONFIG["num_warps"]
    if block > LONGEST:
        quantise_long_rows[(rows,)](x, out, scales, n, BLOCK=CONFIG["TILE"], num_warps=warps)
        return out, scales
    group = max(1, CONFIG["TILE"] // block)
    grid = (triton.cdiv(rows, group),)
    quantise_rows[grid](x, out, scales, rows, n, ROWS=group, BLOCK=block, num_warps=warps)
    return out, scales
