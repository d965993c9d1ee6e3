# problem: cumsum
# status: correct
# stage: promotion_gate
# reason: not timed
# tl.associative_scan with an own combining function; the carry goes along the row.
import torch
import triton
import triton.language as tl


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def scan_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * n
    y += row * n
    before = tl.zeros((1,), tl.float32)
    for start in range(0, tl.cdiv(n, BLOCK)):
        at = start * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=0.0)
        tl.store(y + at, before + tl.associative_scan(v, 0, plus), mask=at < n)
        before += tl.sum(v, axis=0)


def kernel_function(x):
    y = torch.empty_like(x)
    scan_row[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048)
    return y
