"""Largest value of each 3 x 2 window of a plane, and beside it the sums and maxima of rows."""

import torch
import triton
import triton.language as tl

CONFIG = {"BLOCK": 32}
SPACE = {"BLOCK": [16, 32, 64]}


@triton.jit
def pool_kernel(x_ptr, out_ptr, width, out_width, BLOCK: tl.constexpr):
    line = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < out_width
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for j in range(2):
        for i in range(3):
            x = tl.load(x_ptr + (line + i) * width + cols + j, mask=mask, other=float("-inf"))
            best = tl.maximum(best, x)
    tl.store(out_ptr + line * out_width + cols, best, mask=mask)


@triton.jit
def rows_kernel(x_ptr, sums_ptr, tops_ptr, width, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    top = float("-inf")
    for start in range(0, width, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + line * width + cols, mask=cols < width, other=0.0)
        total += x
    for start in range(0, width, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        y = tl.load(x_ptr + line * width + cols, mask=cols < width, other=float("-inf"))
        top = tl.maximum(top, tl.max(y, axis=0))
    tl.store(sums_ptr + line, tl.sum(total, axis=0))
    tl.store(tops_ptr + line, top)


def kernel_function(x):
    height, width = x.shape
    out = torch.empty((height - 2, width - 1), dtype=x.dtype, device=x.device)
    sums = torch.empty(height, dtype=x.dtype, device=x.device)
    tops = torch.empty(height, dtype=x.dtype, device=x.device)
    BLOCK = CONFIG["BLOCK"]
    grid = (triton.cdiv(width - 1, BLOCK), height - 2)
    pool_kernel[grid](x, out, width, width - 1, BLOCK=BLOCK)
    rows_kernel[(height,)](x, sums, tops, width, BLOCK=BLOCK)
    return out, sums, tops
