"""RMS norm of rows whose weight is loaded before the sum of squares is known."""

import torch
import triton
import triton.language as tl

CONFIG = {"num_warps": 4}
SPACE = {"num_warps": [1, 2, 4, 8]}


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n + 1e-5)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)  # the same for every row
    tl.store(out_ptr + row * n + cols, x * scale * weight, mask=mask)


def kernel_function(x, weight):
    rows, n = x.shape
    out = torch.empty_like(x)
    rms_norm_kernel[(rows,)](x, weight, out, n, BLOCK=triton.next_power_of_2(n), **CONFIG)
    return out
