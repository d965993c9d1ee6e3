"""Residual add and RMS norm of each row: programs that stay, and fetch rows ahead to shared memory.

Written for kernel-evo from the definition. A program takes every PROGRAMS-th row; the compiler copies the
inputs of the next STAGES - 1 rows to shared memory meanwhile, so that reading goes on while a row is summed
and stored. Two reads and two writes an element. The sum x + residual is stored and kept in float32 for the
norm. A row beyond LONGEST is read twice, in chunks.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-6)
CONFIG = {
    "PROGRAMS": 264,
    "STAGES": 3,
    "num_warps": 16,
}
SPACE = {
    "PROGRAMS": [132, 256, 264, 396, 528, 660, 792],
    "STAGES": [1, 2, 3, 4, 5],
    "num_warps": [2, 4, 8, 16, 32],
}
LONGEST = 16384


@triton.jit
def norm_rows(
    x, residual, weight, normed, total, rows, n,
    BLOCK: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, BLOCK)
    inside = lane < n
    gain = tl.load(weight + lane, mask=inside)
    for row in tl.range(tl.program_id(0), rows, PROGRAMS, num_stages=STAGES):
        at = tl.cast(row, tl.int64) * n + lane
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + at, value, mask=inside)
        scale = tl.rsqrt(tl.sum(value * value, axis=0) / n + EPS)
        tl.store(normed + at, value * scale * gain.to(tl.float32), mask=inside)


@triton.jit
def norm_long_rows(x, residual, weight, normed, total, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = begin + start + lane
        value = tl.load(x + at, mask=lane < n - start, other=0.0).to(tl.float32)
        value += tl.load(residual + at, mask=lane < n - start, other=0.0).to(tl.float32)
        tl.store(total + at, value, mask=lane < n - start)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    for start in range(0, n, BLOCK):
        at = begin + start + lane
        value = tl.load(x + at, mask=lane < n - start).to(tl.float32)
        value += tl.load(residual + at, mask=lane < n - start).to(tl.float32)
        gain = tl.load(weight + start + lane, mask=lane < n - start).to(tl.float32)
        tl.store(normed + at, value * scale * gain, mask=lane < n - start)


def kernel_function(x, residual, weight):
    n = x.shape[-1]
    rows = x.numel() // n
    normed = torch.empty_like(x)
    total = torch.empty_like(x)
    tensors = (x, residual, weight, normed, total)
    block = triton.next_power_of_2(n)
    if block > LONGEST:
        norm_long_rows[(rows,)](*tensors, n, BLOCK=4096, num_warps=CONFIG["num_warps"])
        return normed, total
    norm_rows[(min(rows, CONFIG["PROGRAMS"]),)](*tensors, rows, n, BLOCK=block, **CONFIG)
    return normed, total
