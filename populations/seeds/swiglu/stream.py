"""SwiGLU of packed rows: SiLU of the first half of each row times the second, read once and written once.

Written for kernel-evo from the definition. A program takes BLOCK neighbouring columns of one row, from both
halves. SiLU is gate / (1 + exp(-gate)) in float32.
"""

import torch
import triton
import triton.language as tl

SCALE = tl.constexpr(-1.4426950408889634)  # -log2(e)
CONFIG = {
    "BLOCK": 2048,
    "num_warps": 4,
}
SPACE = {
    "BLOCK": [512, 1024, 2048, 4096, 8192, 16384],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def swiglu(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = tl.program_id(1) * BLOCK
    lane = tl.arange(0, BLOCK)
    inside = lane < n - start
    x += row * 2 * n + start
    gate = tl.load(x + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
    up = tl.load(x + n + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
    value = gate / (1.0 + tl.exp2(gate * SCALE)) * up
    tl.store(out + row * n + start + lane, value, mask=inside, cache_modifier=".cs")


def kernel_function(x):
    n = x.shape[-1] // 2
    out = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    rows = x.numel() // (2 * n)
    swiglu[(rows, triton.cdiv(n, CONFIG["BLOCK"]))](x, out, n, **CONFIG)
    return out
