# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# Parts of rows: a kernel for partial maxima and sums, one that joins them, one that writes.
from math import inf

import torch
import triton
import triton.language as tl


@triton.jit
def part(x, top, total, n, PART: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    at = piece * PART + tl.arange(0, PART)
    v = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    highest = tl.max(v, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    tl.store(top + row * tl.num_programs(1) + piece, highest)
    tl.store(total + row * tl.num_programs(1) + piece, tl.sum(tl.exp(v - base), 0))


@triton.jit
def joined(top, total, pieces, PIECES: tl.constexpr):
    at = tl.arange(0, PIECES)
    t = tl.load(top + tl.program_id(0) * pieces + at, mask=at < pieces, other=float("-inf"))
    s = tl.load(total + tl.program_id(0) * pieces + at, mask=at < pieces, other=0.0)
    highest = tl.max(t, 0)
    whole = tl.sum(tl.where(t == float("-inf"), 0.0, s * tl.exp(t - highest)) + tl.where(s != s, s, 0.0), 0)
    tl.store(top + tl.program_id(0) * pieces, highest)
    tl.store(total + tl.program_id(0) * pieces, whole)


@triton.jit
def written(x, y, top, total, n, PART: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    at = piece * PART + tl.arange(0, PART)
    v = tl.load(x + row * n + at, mask=at < n).to(tl.float32)
    highest = tl.load(top + row * tl.num_programs(1))
    tl.store(y + row * n + at, tl.exp(v - highest) / tl.load(total + row * tl.num_programs(1)), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    size = 4096
    pieces = triton.cdiv(n, size)
    y = torch.empty_like(x)
    top, total = (torch.empty((rows, pieces), dtype=torch.float32, device=x.device) for _ in range(2))
    part[(rows, pieces)](x, top, total, n, size)
    joined[(rows,)](top, total, pieces, triton.next_power_of_2(pieces))
    written[(rows, pieces)](x, y, top, total, n, size)
    return y
