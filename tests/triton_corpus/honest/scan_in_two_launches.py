# problem: cumsum
# status: correct
# stage: promotion_gate
# reason: not timed
# Sums of parts first, in a buffer; each part then adds up what lies before it.
import torch
import triton
import triton.language as tl


@triton.jit
def sums(x, parts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(1) * n + at, mask=at < n, other=0.0)
    tl.store(parts + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), tl.sum(v))


@triton.jit
def scans(x, y, parts, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    pid, row = tl.program_id(0), tl.program_id(1)
    earlier = tl.arange(0, PARTS)
    before = tl.sum(tl.load(parts + row * tl.num_programs(0) + earlier, mask=earlier < pid, other=0.0))
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(y + row * n + at, tl.cumsum(v, 0) + before, mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    block = 1024
    grid = (triton.cdiv(n, block), rows)
    parts = x.new_empty(grid)
    sums[grid](x, parts, n, block, num_warps=4)
    scans[grid](x, y, parts, n, block, triton.next_power_of_2(grid[0]), num_warps=4)
    return y
