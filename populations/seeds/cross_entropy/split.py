"""Mean cross-entropy over many classes: rows cut into parts, merged and averaged in a second launch.

Written for kernel-evo from the definition. A program reads CHUNK logits of a row in blocks that it keeps one
maximum and a vector of sums for, so that a logit costs one subtraction, one exponential and one addition.
Parts keep the device full where rows are few and even out its last wave where they are many. Maximum and sum of every
part go to scratch in float32; the second kernel merges the parts of ROWS rows at a time, and the third adds up.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "CHUNK": 65536,
    "BLOCK": 8192,
    "num_warps": 8,
}
SPACE = {
    "CHUNK": [16384, 32768, 65536, 131072],
    "BLOCK": [2048, 4096, 8192, 16384],
    "num_warps": [2, 4, 8, 16],
}


@triton.jit
def sums_of_parts(logits, tops, totals, n, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    part = tl.program_id(1)
    place = tl.program_id(0) * tl.num_programs(1) + part
    logits += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    largest = float("-inf")
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(part * CHUNK, tl.minimum(part * CHUNK + CHUNK, n), BLOCK):
        inside = lane < n - start
        value = tl.load(logits + start + lane, mask=inside, other=float("-inf"), eviction_policy="evict_first")
        value = value.to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, axis=0))
        base = tl.where(larger == float("-inf"), 0.0, larger)  # nothing but -inf so far
        sums = sums * tl.exp(largest - base) + tl.exp(value - base)
        largest = larger
    tl.store(tops + place, largest)
    tl.store(totals + place, tl.sum(sums, axis=0))


@triton.jit
def loss_of_rows(logits, targets, tops, totals, losses, n, parts, PADDED: tl.constexpr):
    row = tl.program_id(0)
    picked = tl.load(logits + row.to(tl.int64) * n + tl.load(targets + row)).to(tl.float32)
    part = tl.arange(0, PADDED)
    largest = tl.load(tops + row * parts + part, mask=part < parts, other=float("-inf"))
    total = tl.load(totals + row * parts + part, mask=part < parts, other=0.0)
    top = tl.max(largest, axis=0)
    tl.store(losses + row, tl.log(tl.sum(total * tl.exp(largest - top), axis=0)) + (top - picked))


@triton.jit
def mean_of_losses(losses, out, rows, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows, BLOCK):
        sums += tl.load(losses + start + lane, mask=lane < rows - start, other=0.0)
    tl.store(out, tl.sum(sums, axis=0) / rows)


def kernel_function(logits, targets):
    rows, n = logits.shape
    parts = triton.cdiv(n, CONFIG["CHUNK"])
    tops = torch.empty((rows, parts), dtype=torch.float32, device=logits.device)
    totals = torch.empty((rows, parts), dtype=torch.float32, device=logits.device)
    losses = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    sums_of_parts[(rows, parts)](logits, tops, totals, n, **CONFIG)
    padded = triton.next_power_of_2(parts)
    loss_of_rows[(rows,)](logits, targets, tops, totals, losses, n, parts, PADDED=padded, num_warps=1)
    mean_of_losses[(1,)](losses, out, rows, BLOCK=1024, num_warps=8)
    return out
