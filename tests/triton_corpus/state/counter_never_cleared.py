# problem: softmax
# status: incorrect
# stage: smoke search_gate
# reason: not written everywhere
# The last program to arrive finishes the work; the counter is expected to be zero, as the last run
# left it.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, counter, n, BLOCK: tl.constexpr):
    arrived = tl.atomic_add(counter, 1)
    if arrived == tl.num_programs(0) - 1:
        at = tl.arange(0, BLOCK)
        for row in range(0, tl.num_programs(0)):
            v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
            e = tl.exp(v - tl.max(v, axis=0))
            tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)
        tl.store(counter, 0)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    counter = torch.empty((), dtype=torch.int32, device=x.device)
    softmax_row[(rows,)](x, y, counter, n, BLOCK=triton.next_power_of_2(n))
    return y
