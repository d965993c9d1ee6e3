# problem: softmax
# status: rejected
# stage: build
# reason: SCALE (line 11) is not a constant that can be read
# A constant that depends on where the module runs: what is measured might not be what is exported.
import torch
import triton
import triton.language as tl

SCALE = tl.constexpr(1.0)
if torch.cuda.is_available():
    SCALE = tl.constexpr(0.5)


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0)) * SCALE
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    softmax_row[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
