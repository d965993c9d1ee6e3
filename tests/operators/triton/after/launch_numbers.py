"""Sum of the first i + 1 values of row i: later programs have more to do."""

import torch
import triton
import triton.language as tl

CONFIG = {"maxnreg": 128}
SPACE = {"maxnreg": [64, 96, 128, 168, 255]}

BLOCK = 16


@triton.jit
def prefix_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    sizes = 0.0
    for start in range(0, row + 1, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < row + 1
        x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
        sizes += tl.sum(tl.abs(x), axis=0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row * 2, total)
    tl.store(out_ptr + row * 2 + 1, sizes)


def kernel_function(x):
    rows, n = x.shape
    out = torch.empty((rows, 2), dtype=x.dtype, device=x.device)
    prefix_kernel[(rows,)](x, out, n, BLOCK, num_warps=4, maxnreg=CONFIG["maxnreg"])
    return out
