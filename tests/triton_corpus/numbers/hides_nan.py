# problem: softmax
# status: incorrect
# stage: smoke search_gate
# reason: wrong result
# NaN becomes zero.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    v = tl.where(v == v, v, 0.0)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    softmax_row[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
