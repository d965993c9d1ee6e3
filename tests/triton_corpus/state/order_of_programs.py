# problem: cumsum
# status: incorrect
# stage: smoke search_gate
# reason: wrong result
# Each program takes the sum that the one before it left, without waiting for it.
import torch
import triton
import triton.language as tl


@triton.jit
def scan_part(x, y, total, n, BLOCK: tl.constexpr):
    row, part = tl.program_id(1), tl.program_id(0)
    parts = tl.num_programs(0)
    at = part * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    before = tl.load(total + row * parts + part - 1, mask=part > 0, other=0.0)
    tl.store(y + row * n + at, before + tl.cumsum(v, axis=0), mask=at < n)
    tl.store(total + row * parts + part, before + tl.sum(v, axis=0))


def kernel_function(x):
    rows, n = x.shape
    parts = triton.cdiv(n, 16)
    y = torch.empty_like(x)
    total = torch.empty(rows, parts, device=x.device)
    scan_part[(parts, rows)](x, y, total, n, BLOCK=16)
    return y
