"""Max pooling 3x3x3, stride 2, padding 1, dilation 3: whole lines in wide loads, depth as a rolling window.

The window is separable. A program holds ROWS output rows of one volume and walks down the depth: for each
input slice it takes the maximum of three rows, element by element over whole lines (16-byte loads, full
sectors), then of three slices, of which two odd ones wait in registers, so every slice is reduced once; only
the result is gathered along the width. Where a tap lies in the padding, the tap in the middle stands in for
it: it is in the same window, so loads need no masks. Exact; NaN wins, as in PyTorch. One pass over memory
but for a few rows between tiles. Written for kernel-evo from the definition.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "ROWS": 16,
    "SLICES": 31,
    "num_warps": 16,
}
SPACE = {
    "ROWS": [4, 8, 16, 32],
    "SLICES": [4, 8, 16, 31, 62],
    "num_warps": [2, 4, 8, 16],
}


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def inside(at, size):
    """The place of a tap, or of the middle tap where it lies in the padding."""
    return tl.where(at < 0, at + 3, tl.where(at >= size, at - 3, at))


@triton.jit
def rows_of_slice(x, d, depth, area, upper, middle, lower):
    """Maximum over the three rows of each window, whole lines."""
    at = x + inside(d, depth) * area
    values = larger(tl.load(at + upper).to(tl.float32), tl.load(at + middle).to(tl.float32))
    return larger(values, tl.load(at + lower).to(tl.float32))


@triton.jit
def pool(x, out, depth, height, width, out_depth, out_height, out_width, tiles_down, tiles_deep,
         ROWS: tl.constexpr, SLICES: tl.constexpr, LINE: tl.constexpr, FULL: tl.constexpr,
         OUT_LINE: tl.constexpr):  # fmt: skip
    down = tl.program_id(0) % tiles_down
    deep = tl.program_id(0) // tiles_down % tiles_deep
    volume = tl.program_id(0) // (tiles_down * tiles_deep)
    area = height * width
    x += volume.to(tl.int64) * (depth * area)
    out += volume.to(tl.int64) * (out_depth * out_height * out_width)

    row = down * ROWS + tl.arange(0, ROWS)[:, None]
    h = 2 * tl.minimum(row, out_height - 1) - 1
    w = tl.arange(0, LINE)[None, :]
    if not FULL:  # beyond the end of a line: its first value again
        w = tl.where(w < width, w, 0)
    upper = inside(h, height) * width + w
    middle = (h + 3) * width + w
    lower = inside(h + 6, height) * width + w

    column = tl.arange(0, OUT_LINE)[None, :]
    place = tl.broadcast_to(column, [ROWS, OUT_LINE])  # the taps are at 2 column - 1, + 2 and + 5
    left = tl.maximum(place - 1, 0)
    centre = tl.minimum(place + 1, LINE // 2 - 1)
    right = tl.minimum(place + 2, LINE // 2 - 1)
    result = out + row * out_width + column
    stored = (row < out_height) & (column < out_width)

    first = deep * SLICES
    d = 2 * first - 1
    odd0 = rows_of_slice(x, d, depth, area, upper, middle, lower)
    odd1 = rows_of_slice(x, d + 2, depth, area, upper, middle, lower)
    odd2 = rows_of_slice(x, d + 4, depth, area, upper, middle, lower)
    for s in range(first, tl.minimum(first + SLICES, out_depth)):
        d = 2 * s - 1
        even = rows_of_slice(x, d + 3, depth, area, upper, middle, lower)
        odd3 = rows_of_slice(x, d + 6, depth, area, upper, middle, lower)
        lines = larger(larger(odd0, even), odd3).to(out.dtype.element_ty)
        at_even, at_odd = tl.split(tl.reshape(lines, [ROWS, LINE // 2, 2]))
        values = tl.gather(at_even, centre, 1).to(tl.float32)
        before = tl.gather(at_odd, left, 1).to(tl.float32)
        behind = tl.gather(at_odd, right, 1).to(tl.float32)
        values = larger(values, tl.where(column == 0, values, before))
        values = larger(values, tl.where(2 * column + 5 >= width, values, behind))
        tl.store(result + s * (out_height * out_width), values.to(out.dtype.element_ty), mask=stored)
        odd0, odd1, odd2 = odd1, odd2, odd3


def kernel_function(x):
    """x [N, C, D, H, W] -> [N, C, (D - 5) // 2 + 1, (H - 5) // 2 + 1, (W - 5) // 2 + 1]."""
    batch, channels, depth, height, width = x.shape
    size = [(extent - 5) // 2 + 1 for extent in (depth, height, width)]
    out = torch.empty((batch, channels, *size), device=x.device, dtype=x.dtype)
    down = triton.cdiv(size[1], CONFIG["ROWS"])
    deep = triton.cdiv(size[0], CONFIG["SLICES"])
    line, out_line = triton.next_power_of_2(width), triton.next_power_of_2(size[2])
    pool[(batch * channels * down * deep,)](
        x, out, depth, height, width, *size, down, deep,
        LINE=line, FULL=line == width, OUT_LINE=out_line, **CONFIG,
    )  # fmt: skip
    return out
