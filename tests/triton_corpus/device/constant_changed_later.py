# problem: softmax
# status: rejected
# stage: build
# reason: SCALE (line 23) is not a constant that can be read
# A constant that the host function changes.
import torch
import triton
import triton.language as tl

SCALE = 1.0


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0)) * SCALE
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    global SCALE
    SCALE = 2.0
    rows, n = x.shape
    y = torch.empty_like(x)
    softmax_row[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
