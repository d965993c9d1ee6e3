# problem: softmax
# status: incorrect
# stage: smoke search_gate
# reason: 
# Joins maxima by atomics in memory that nobody set.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, top, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    tl.atomic_max(top + row, tl.max(v, axis=0))
    e = tl.exp(v - tl.load(top + row))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    top = torch.empty(rows, device=x.device)
    softmax_row[(rows,)](x, y, top, n, BLOCK=triton.next_power_of_2(n))
    return y
