# problem: softmax
# status: lowered
# stage: build
# reason: a cooperative grid
# All programs meet at a counter that this call zeroes: lowered, and said not to be checked.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_meeting(x, y, top, counter, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    tl.store(top + row, tl.max(v, 0))
    tl.atomic_add(counter, 1, sem="acq_rel")
    while tl.atomic_add(counter, 0, sem="acquire") < tl.num_programs(0):
        pass
    e = tl.exp(v - tl.load(top + row))
    tl.store(y + row * n + at, e / tl.sum(e, 0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    top = torch.empty(rows, device=x.device)
    counter = torch.zeros((1,), device=x.device, dtype=torch.int32)
    softmax_meeting[(rows,)](x, y, top, counter, n, triton.next_power_of_2(n), launch_cooperative_grid=True)
    return y
