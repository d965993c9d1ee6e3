"""Depthwise 3x3 convolution: each program slides down ROWS output rows and loads every input row once.

A lane owns a pair of neighbouring outputs. Their four inputs are two pairs: its own, read from memory, and
its right neighbour's, read again through L1 (cheaper than moving values between lanes, and both stay whole
words). Two rows of values wait in registers, four more are on their way: a load can't overtake a store by
itself. The width is a constant of the kernel, so a row's address is a literal offset, and the last tile
moves up to end with the image, so rows need no masks. One pass over memory but for two rows in ROWS + 2;
fp32 sums, rounded once. With PAIRS = 32 * num_warps a warp stores 128 contiguous bytes, although output rows
start at 4-byte addresses. Written for kernel-evo from the definition.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "ROWS": 15,
    "PAIRS": 256,
    "num_warps": 8,
    "maxnreg": 128,
}
SPACE = {
    "ROWS": [6, 10, 15, 17, 30, 34, 51],
    "PAIRS": [32, 64, 128, 256, 512],
    "num_warps": [1, 2, 4, 8, 16],
    "maxnreg": [64, 96, 128, 168, 255],
}


@triton.jit
def pair(at, inside, WHOLE: tl.constexpr):
    """Two neighbouring values of each lane."""
    if WHOLE:
        values = tl.load(at)
    else:
        values = tl.load(at, mask=inside, other=0.0)
    return values


@triton.jit
def taps(sums, a, b, c, w0, w1, w2):
    """One row of the filter."""
    return sums + a * w0 + b * w1 + c * w2


@triton.jit
def depthwise(x, weight, out, channels, height, tiles_down,
              WIDTH: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr):  # fmt: skip
    OUT_WIDTH: tl.constexpr = WIDTH - 2
    WHOLE: tl.constexpr = WIDTH % 2 == 0  # pairs don't straddle the end of a row
    tile = tl.program_id(0)
    top = tl.minimum(tile % tiles_down * ROWS, height - 2 - ROWS)
    plane = tile // tiles_down

    lane = tl.arange(0, 2)[None, :]
    first = tl.program_id(1) * PAIRS + tl.arange(0, PAIRS)
    if WHOLE:
        left_at = 2 * tl.minimum(first, WIDTH // 2 - 1)[:, None] + lane
        right_at = 2 * tl.minimum(first + 1, WIDTH // 2 - 1)[:, None] + lane
        stored = (first < OUT_WIDTH // 2)[:, None] & (lane < 2)
    else:
        left_at = 2 * first[:, None] + lane
        right_at = left_at + 2
        stored = left_at < OUT_WIDTH
    left_in = left_at < WIDTH
    right_in = right_at < WIDTH
    x += plane.to(tl.int64) * (height * WIDTH) + top * WIDTH
    left = x + left_at
    right = x + right_at
    out += plane.to(tl.int64) * ((height - 2) * OUT_WIDTH) + top * OUT_WIDTH
    result = out + (2 * first[:, None] + lane)

    filter_ = weight + plane % channels * 9
    w00 = tl.load(filter_).to(tl.float32)
    w01 = tl.load(filter_ + 1).to(tl.float32)
    w02 = tl.load(filter_ + 2).to(tl.float32)
    w10 = tl.load(filter_ + 3).to(tl.float32)
    w11 = tl.load(filter_ + 4).to(tl.float32)
    w12 = tl.load(filter_ + 5).to(tl.float32)
    w20 = tl.load(filter_ + 6).to(tl.float32)
    w21 = tl.load(filter_ + 7).to(tl.float32)
    w22 = tl.load(filter_ + 8).to(tl.float32)

    LAST: tl.constexpr = ROWS + 1
    upper_left, upper_right = pair(left, left_in, WHOLE), pair(right, right_in, WHOLE)
    middle_left, middle_right = pair(left + WIDTH, left_in, WHOLE), pair(right + WIDTH, right_in, WHOLE)
    # a queue of four rows; past the last one: that row again, unused
    l0, r0 = pair(left + 2 * WIDTH, left_in, WHOLE), pair(right + 2 * WIDTH, right_in, WHOLE)
    row = min(3, LAST) * WIDTH
    l1, r1 = pair(left + row, left_in, WHOLE), pair(right + row, right_in, WHOLE)
    row = min(4, LAST) * WIDTH
    l2, r2 = pair(left + row, left_in, WHOLE), pair(right + row, right_in, WHOLE)
    row = min(5, LAST) * WIDTH
    l3, r3 = pair(left + row, left_in, WHOLE), pair(right + row, right_in, WHOLE)

    a0, b0 = tl.split(upper_left.to(tl.float32))
    c0, d0 = tl.split(upper_right.to(tl.float32))
    a1, b1 = tl.split(middle_left.to(tl.float32))
    c1, d1 = tl.split(middle_right.to(tl.float32))
    for r in tl.static_range(ROWS):
        a2, b2 = tl.split(l0.to(tl.float32))
        c2, d2 = tl.split(r0.to(tl.float32))
        l0, r0, l1, r1, l2, r2 = l1, r1, l2, r2, l3, r3
        if r + 6 <= LAST:
            row = (r + 6) * WIDTH
            l3, r3 = pair(left + row, left_in, WHOLE), pair(right + row, right_in, WHOLE)
        even = taps(tl.zeros_like(a0), a0, b0, c0, w00, w01, w02)
        even = taps(even, a1, b1, c1, w10, w11, w12)
        even = taps(even, a2, b2, c2, w20, w21, w22)
        odd = taps(tl.zeros_like(a0), b0, c0, d0, w00, w01, w02)
        odd = taps(odd, b1, c1, d1, w10, w11, w12)
        odd = taps(odd, b2, c2, d2, w20, w21, w22)
        sums = tl.join(even, odd).to(out.dtype.element_ty)
        tl.store(result + r * OUT_WIDTH, sums, mask=stored)
        a0, b0, c0, d0 = a1, b1, c1, d1
        a1, b1, c1, d1 = a2, b2, c2, d2


def kernel_function(x, weight):
    """x [B, C, H, W], weight [C, 1, 3, 3] -> [B, C, H - 2, W - 2]."""
    batch, channels, height, width = x.shape
    out = torch.empty((batch, channels, height - 2, width - 2), device=x.device, dtype=x.dtype)
    rows = min(CONFIG["ROWS"], height - 2)
    down = triton.cdiv(height - 2, rows)
    grid = (batch * channels * down, triton.cdiv(width - 2, 2 * CONFIG["PAIRS"]))
    depthwise[grid](
        x, weight, out, channels, height, down,
        WIDTH=width, ROWS=rows, PAIRS=CONFIG["PAIRS"], num_warps=CONFIG["num_warps"], maxnreg=CONFIG["maxnreg"],
    )  # fmt: skip
    return out
