"""Softmax over very long rows: two passes over each row in chunks, three transfers an element.

Written for kernel-evo from the definition. The first pass keeps a running maximum and sum for every group
of 16 bytes of neighbouring elements: no thread waits for another until the row ends. The second pass goes
backwards, so that it begins with what L2 still holds. Accumulation in float32.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
CONFIG = {
    "BLOCK": 4096,
    "num_warps": 8,
}
SPACE = {
    "BLOCK": [1024, 2048, 4096, 8192, 16384],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def softmax_online(x, out, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK // WIDE)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    largest = tl.full([BLOCK // WIDE], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK // WIDE], tl.float32)
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, other=float("-inf"), eviction_policy="evict_last")
        value = value.to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, axis=1))
        base = tl.where(larger == float("-inf"), 0.0, larger)  # nothing but -inf so far
        total *= tl.exp2((largest - base) * LOG2_E)
        total += tl.sum(tl.exp2((value - base[:, None]) * LOG2_E), axis=1)
        largest = larger
    top = tl.max(largest, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp2((largest - top) * LOG2_E), axis=0)
    last = (n - 1) // BLOCK * BLOCK
    for back in range(0, n, BLOCK):
        start = last - back
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        value = tl.exp2((value - top) * LOG2_E) * scale
        tl.store(out + start + lane, value, mask=inside, cache_modifier=".cs")


def kernel_function(x):
    n = x.shape[-1]
    out = torch.empty_like(x)
    wide = 16 // x.element_size()  # elements of one 16-byte load
    softmax_online[(x.numel() // n,)](x, out, n, WIDE=wide, **CONFIG)
    return out
