"""RMS norm of each row with a gain: programs that stay, and fetch rows ahead to shared memory.

Written for kernel-evo from the definition. A program takes every PROGRAMS-th group of ROWS rows; the
compiler copies the next STAGES - 1 groups to shared memory meanwhile, so that reading goes on while a group
is summed and stored. Each element is read once and written once; sums in float32. The gain stays in
registers. A row beyond LONGEST is read twice, in chunks.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-6)
CONFIG = {
    "ROWS": 1,
    "PROGRAMS": 528,
    "STAGES": 3,
    "num_warps": 8,
}
SPACE = {
    "ROWS": [1, 2, 4, 8],
    "PROGRAMS": [132, 256, 264, 396, 512, 528, 660, 792, 1024, 1056],
    "STAGES": [1, 2, 3, 4, 5],
    "num_warps": [2, 4, 8, 16, 32],
}
LONGEST = 16384


@triton.jit
def norm_rows(
    x, weight, out, rows, n,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    gain = tl.load(weight + column, mask=column < n)
    for group in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), PROGRAMS, num_stages=STAGES):
        first = group * ROWS
        at = tl.cast(first, tl.int64) * n + row * n + column
        inside = (column < n) & (row < rows - first)
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(value * value, axis=1) / n + EPS)
        tl.store(out + at, value * scale[:, None] * gain.to(tl.float32), mask=inside)


@triton.jit
def norm_long_rows(x, weight, out, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + begin + start + lane, mask=lane < n - start, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    for start in range(0, n, BLOCK):
        at = begin + start + lane
        value = tl.load(x + at, mask=lane < n - start).to(tl.float32)
        gain = tl.load(weight + start + lane, mask=lane < n - start).to(tl.float32)
        tl.store(out + at, value * scale * gain, mask=lane < n - start)


def kernel_function(x, weight):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    if block > LONGEST:
        norm_long_rows[(rows,)](x, weight, out, n, BLOCK=4096, num_warps=CONFIG["num_warps"])
        return out
    programs = min(triton.cdiv(rows, CONFIG["ROWS"]), CONFIG["PROGRAMS"])
    norm_rows[(programs,)](x, weight, out, rows, n, BLOCK=block, **CONFIG)
    return out
