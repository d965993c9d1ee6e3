"""Running sum along each row: chunk after chunk with a carry, several chunks loading ahead.

Written for kernel-evo from the definition. One program a row. A chunk's own scan doesn't wait for the
carry, which is added when it is known; the carry is the sum of a chunk, so no lane has to hand on its last
element. Loads run STAGES chunks ahead in shared memory. Accumulation in float32.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "BLOCK": 8192,
    "STAGES": 3,
    "num_warps": 4,
}
SPACE = {
    "BLOCK": [1024, 2048, 4096, 8192, 16384],
    "STAGES": [1, 2, 3, 4],
    "num_warps": [2, 4, 8, 16, 32],
}


@triton.jit
def scan_carried(x, out, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    carry = 0.0
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, other=0.0, eviction_policy="evict_first")
        value = value.to(tl.float32)
        tl.store(out + start + lane, tl.cumsum(value, axis=0) + carry, mask=inside, cache_modifier=".wt")
        carry += tl.sum(value, axis=0)


def kernel_function(x):
    n = x.shape[-1]
    out = torch.empty_like(x)
    scan_carried[(x.numel() // n,)](x, out, n, **CONFIG)
    return out
