"""Mean cross-entropy over many classes: rows cut into parts, merged and averaged after.

Written for kernel-evo from the definition. A program reads CHUNK logits of a row in blocks, with one
maximum and a vector of sums: a logit costs a maximum, two multiply-adds and an exp2. Parts keep the device
full where rows are few and even out its last wave where they are many. Maximum and sum of every part go to
scratch in float32; a second kernel merges the parts of a row, a third averages: no atomics, the same bits
each run.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
CONFIG = {
    "CHUNK": 65536,
    "BLOCK": 8192,
    "STAGES": 1,
    "num_warps": 8,
}
SPACE = {
    "CHUNK": [16384, 32768, 65536, 131072],
    "BLOCK": [2048, 4096, 8192, 16384],
    "STAGES": [1, 2, 3, 4],
    "num_warps": [2, 4, 8, 16],
}


@triton.jit
def sums_of_parts(logits, tops, totals, n, CHUNK: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    part = tl.program_id(1)
    place = tl.program_id(0) * tl.num_programs(1) + part
    logits += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    largest = float("-inf")
    sums = tl.zeros([BLOCK], tl.float32)
    end = tl.minimum(part * CHUNK + CHUNK, n)
    for start in tl.range(part * CHUNK, end, BLOCK, num_stages=STAGES):
        inside = lane < n - start
        value = tl.load(
            logits + start + lane, mask=inside, other=float("-inf"), eviction_policy="evict_first"
        )
        value = value.to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, axis=0))
        base = tl.where(larger == float("-inf"), 0.0, larger)  # nothing but -inf so far
        base *= LOG2_E
        sums = sums * tl.exp2(largest * LOG2_E - base) + tl.exp2(value * LOG2_E - base)
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
    tl.store(losses + row, tl.log(tl.sum(total * tl.exp2((largest - top) * LOG2_E), axis=0)) + (top - picked))


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
    out = torch.empty((), dtype=torch.float32, device=logits.device)
    sums_of_parts[(rows, parts)](logits, tops, totals, n, **CONFIG)
    padded = triton.next_power_of_2(parts)
    loss_of_rows[(rows,)](logits, targets, tops, totals, losses, n, parts, PADDED=padded, num_warps=1)
    mean_of_losses[(1,)](losses, out, rows, BLOCK=1024, num_warps=8)
    return out
