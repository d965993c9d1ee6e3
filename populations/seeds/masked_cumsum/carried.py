"""Running sum of masked elements along each row: chunk after chunk with a carry, several loading ahead.

Written for kernel-evo from the definition. One program a row; the mask is multiplied in, as the definition
does. A chunk's own scan doesn't wait for the carry, which is added when it is known. Loads run STAGES
chunks ahead. Accumulation in float32.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "BLOCK": 4096,
    "STAGES": 3,
    "num_warps": 4,
}
SPACE = {
    "BLOCK": [1024, 2048, 4096, 8192, 16384],
    "STAGES": [1, 2, 3, 4],
    "num_warps": [2, 4, 8, 16, 32],
}


@triton.jit
def scan_masked(x, mask, out, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    carry = 0.0
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        at = begin + start
        inside = lane < n - start
        value = tl.load(x + at + lane, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        value *= tl.load(mask + at + lane, mask=inside, other=0, eviction_policy="evict_first").to(tl.float32)
        tl.store(out + at + lane, tl.cumsum(value, axis=0) + carry, mask=inside, cache_modifier=".cs")
        carry += tl.sum(value, axis=0)


def kernel_function(x, mask):
    n = x.shape[-1]
    out = torch.empty_like(x)
    scan_masked[(x.numel() // n,)](x, mask, out, n, **CONFIG)
    return out
