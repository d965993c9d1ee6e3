"""Layer norm of long rows: mean, variance and output in three loops over the chunks of a row."""

import torch
import triton
import triton.language as tl

CONFIG = {"BLOCK": 32, "num_warps": 4}
SPACE = {"BLOCK": [16, 32, 64], "num_warps": [2, 4, 8]}


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        lanes += x
    mean = tl.sum(lanes, axis=0) / n
    spread = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        centred = tl.where(cols < n, x - mean, 0.0)
        spread += centred * centred
    var = tl.sum(spread, axis=0) / n
    scale = tl.rsqrt(var + eps)
    for start in tl.range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
        weight = tl.load(weight_ptr + cols, mask=mask)
        tl.store(out_ptr + row * n + cols, (x - mean) * scale * weight, mask=mask)


def kernel_function(x, weight):
    out = torch.empty_like(x)
    layer_norm_kernel[(x.shape[0],)](x, weight, out, x.shape[1], 1e-5, **CONFIG)
    return out
