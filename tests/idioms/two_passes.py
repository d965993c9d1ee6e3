# Two kernels and a scratch buffer: partial sums of long rows, then their sum.
# case: x=float32[8,100000] -> float32[8]
import torch
import triton
import triton.language as tl


@triton.jit
def partial_sums(x_ptr, part_ptr, n, chunk, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(piece * chunk, min(n, (piece + 1) * chunk), BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + at, mask=(at < n) & (at < (piece + 1) * chunk), other=0.0)
    tl.store(part_ptr + row * tl.num_programs(1) + piece, tl.sum(acc))


@triton.jit
def finish(part_ptr, y_ptr, PIECES: tl.constexpr):
    row = tl.program_id(0)
    tl.store(y_ptr + row, tl.sum(tl.load(part_ptr + row * PIECES + tl.arange(0, PIECES))))


def kernel_function(x):
    rows, n = x.size()
    pieces = 16
    parts = torch.empty(rows, pieces, dtype=torch.float32, device=x.device)
    y = torch.empty(rows, dtype=x.dtype, device="cuda")
    partial_sums[(rows, pieces)](x, parts, n, triton.cdiv(n, pieces), BLOCK=1024)
    finish[(rows, 1, 1)](parts, y, pieces, num_warps=1)
    return y
