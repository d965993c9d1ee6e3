# problem: cumsum
# status: incorrect
# stage: smoke search_gate
# reason: wrong result
# Adds up in memory from torch.empty, as if it were zero.
import torch
import triton
import triton.language as tl


@triton.jit
def scan_row(x, y, total, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=0.0)
        before = tl.load(total + row)
        tl.store(y + row * n + at, before + tl.cumsum(v, axis=0), mask=at < n)
        tl.atomic_add(total + row, tl.sum(v, axis=0))


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    total = torch.empty(rows, device=x.device)
    scan_row[(rows,)](x, y, total, n, BLOCK=1024)
    return y
