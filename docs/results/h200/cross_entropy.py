"""Mean cross-entropy over many classes: one online pass a row, then the mean in a second, small launch.

Written for kernel-evo from the definition. One program a row keeps a running maximum and sum of
exponentials for every group of 16 bytes of neighbouring logits: about one exponential a logit, and no
thread waits for another until the row ends. exp2 with a fused multiply-add takes two instructions; its
error is in proportion to the largest logit, as that of the loss is. Every row writes its loss in float32,
and one program adds them up: no atomics, the same bits each run.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
CONFIG = {
    "BLOCK": 8192,
    "STAGES": 2,
    "num_warps": 8,
}
SPACE = {
    "BLOCK": [1024, 2048, 4096, 8192, 16384],
    "STAGES": [1, 2, 3, 4],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def loss_of_rows(logits, targets, losses, n, BLOCK: tl.constexpr, STAGES: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    logits += row.to(tl.int64) * n
    picked = tl.load(logits + tl.load(targets + row)).to(tl.float32)
    lane = tl.arange(0, BLOCK // WIDE)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    largest = tl.full([BLOCK // WIDE], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK // WIDE], tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        inside = lane < n - start
        value = tl.load(
            logits + start + lane, mask=inside, other=float("-inf"), eviction_policy="evict_first"
        )
        value = value.to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, axis=1))
        base = tl.where(larger == float("-inf"), 0.0, larger)  # nothing but -inf so far
        base *= LOG2_E
        total *= tl.exp2(largest * LOG2_E - base)
        total += tl.sum(tl.exp2(value * LOG2_E - base[:, None]), axis=1)
        largest = larger
    top = tl.max(largest, axis=0)
    total = tl.sum(total * tl.exp2((largest - top) * LOG2_E), axis=0)
    tl.store(losses + row, tl.log(total) + (top - picked))


@triton.jit
def mean_of_losses(losses, out, rows, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows, BLOCK):
        sums += tl.load(losses + start + lane, mask=lane < rows - start, other=0.0)
    tl.store(out, tl.sum(sums, axis=0) / rows)


def kernel_function(logits, targets):
    rows, n = logits.shape
    losses = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=torch.float32, device=logits.device)
    wide = 16 // logits.element_size()  # elements of one 16-byte load
    loss_of_rows[(rows,)](logits, targets, losses, n, WIDE=wide, **CONFIG)
    mean_of_losses[(1,)](losses, out, rows, BLOCK=1024, num_warps=8)
    return out
