# problem: rms_norm
# status: incorrect
# stage: smoke search_gate
# reason: wrong result
# Two outputs, and one of them twice.
import torch
import triton
import triton.language as tl


@triton.jit
def rms_row(x, weight, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=at < n, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) / n + 1e-6)
    tl.store(y + row * n + at, v * scale * w, mask=at < n)


def kernel_function(x, residual, weight):
    rows, n = x.shape
    y = torch.empty_like(x)
    rms_row[(rows,)](x, weight, y, n, BLOCK=triton.next_power_of_2(n))
    return y, y
