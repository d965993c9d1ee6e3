"""Softmax of long rows: a program reads its row three times, chunk by chunk."""

import torch
import triton
import triton.language as tl

CONFIG = {
    "BLOCK": 32,
    "num_warps": 4,
}
SPACE = {
    "BLOCK": [16, 32, 64],
    "num_warps": [2, 4, 8],
}


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * n
    top = float("-inf")
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_row + cols, mask=mask, other=float("-inf"))
        top = tl.maximum(top, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_row + cols, mask=mask, other=float("-inf"))
        total += tl.sum(tl.exp(x - top), axis=0)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_row + cols, mask=mask, other=float("-inf"))
        # what is stored
        tl.store(out_ptr + row * n + cols, tl.exp(x - top) / total, mask=mask)


def kernel_function(x):
    out = torch.empty_like(x)
    rows, n = x.shape
    softmax_kernel[(rows,)](x, out, n, **CONFIG)
    return out
