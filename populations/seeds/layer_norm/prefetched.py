"""Layer norm of each row with gain and bias: programs that stay, and fetch rows ahead to shared memory.

Written for kernel-evo from the definition. A program takes every PROGRAMS-th row; the compiler copies the
next STAGES - 1 rows to shared memory meanwhile, so that reading goes on while a row is summed and stored. A
row is several blocks of BLOCK, of which only the last has a rest. Mean first, then the sum of squared
differences from it, both in float32 and from registers, so nothing cancels; gain and bias stay in registers
too. A row beyond LONGEST is read three times, in chunks.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-5)
CONFIG = {
    "BLOCK": 4096,
    "PROGRAMS": 132,
    "STAGES": 5,
    "num_warps": 16,
}
SPACE = {
    "BLOCK": [2048, 4096, 8192],
    "PROGRAMS": [132, 256, 264, 396, 528, 660, 792],
    "STAGES": [1, 2, 3, 4, 5, 6, 7],
    "num_warps": [4, 8, 16, 32],
}
LONGEST = 16384


@triton.jit
def norm_parts(
    x, weight, bias, out, rows, n,
    PARTS: tl.constexpr, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, BLOCK)
    gains = ()
    shifts = ()
    for part in tl.static_range(PARTS):
        at = part * BLOCK + lane
        gains += (tl.load(weight + at, mask=at < n),)
        shifts += (tl.load(bias + at, mask=at < n),)
    for row in tl.range(tl.program_id(0), rows, PROGRAMS, num_stages=STAGES):
        begin = tl.cast(row, tl.int64) * n
        parts = ()
        sums = tl.zeros([BLOCK], tl.float32)
        for part in tl.static_range(PARTS):
            at = part * BLOCK + lane
            value = tl.load(x + begin + at, mask=at < n, other=0.0)
            sums += value.to(tl.float32)
            parts += (value,)
        mean = tl.sum(sums, axis=0) / n
        squares = tl.zeros([BLOCK], tl.float32)
        for part in tl.static_range(PARTS):
            apart = tl.where(part * BLOCK + lane < n, parts[part].to(tl.float32) - mean, 0.0)
            squares += apart * apart
        scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
        for part in tl.static_range(PARTS):
            at = part * BLOCK + lane
            value = (parts[part].to(tl.float32) - mean) * scale
            value = value * gains[part].to(tl.float32) + shifts[part].to(tl.float32)
            tl.store(out + begin + at, value, mask=at < n)


@triton.jit
def norm_long_rows(x, weight, bias, out, n, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        sums += tl.load(x + start + lane, mask=lane < n - start, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, other=0.0).to(tl.float32)
        value = tl.where(inside, value - mean, 0.0)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside).to(tl.float32)
        gain = tl.load(weight + start + lane, mask=inside).to(tl.float32)
        shift = tl.load(bias + start + lane, mask=inside).to(tl.float32)
        tl.store(out + start + lane, (value - mean) * scale * gain + shift, mask=inside)


def kernel_function(x, weight, bias):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    if n > LONGEST:
        block, warps = CONFIG["BLOCK"], CONFIG["num_warps"]
        norm_long_rows[(rows,)](x, weight, bias, out, n, BLOCK=block, num_warps=warps)
        return out
    parts = triton.cdiv(n, CONFIG["BLOCK"])
    grid = (min(rows, CONFIG["PROGRAMS"]),)
    norm_parts[grid](x, weight, bias, out, rows, n, PARTS=parts, **CONFIG)
    return out
