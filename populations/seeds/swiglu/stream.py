"""SwiGLU of packed rows: SiLU of the first half of each row times the second, read once and written once.

Written for kernel-evo from the definition. A program takes BLOCK neighbouring columns of one row, from both
halves; the programs of a row follow each other, so what is read at one time lies together in memory. SiLU is
gate / (1 + exp(-gate)) in float32. With STREAM at 1 what passes through is the first to leave the caches, at
2 inputs go past the first of them.
"""

import torch
import triton
import triton.language as tl

SCALE = tl.constexpr(-1.4426950408889634)  # -log2(e)
CONFIG = {
    "BLOCK": 2048,
    "STREAM": 0,
    "num_warps": 4,
}
SPACE = {
    "BLOCK": [256, 512, 1024, 2048, 4096, 8192, 16384],
    "STREAM": [0, 1, 2],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def swiglu(x, out, n, blocks, BLOCK: tl.constexpr, STREAM: tl.constexpr):
    FIRST: tl.constexpr = "evict_first" if STREAM == 1 else ""
    PAST: tl.constexpr = ".cg" if STREAM == 2 else ""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    start = tl.program_id(0) % blocks * BLOCK
    lane = tl.arange(0, BLOCK)
    inside = lane < n - start
    x += row * 2 * n + start
    gate = tl.load(x + lane, mask=inside, eviction_policy=FIRST, cache_modifier=PAST).to(tl.float32)
    up = tl.load(x + n + lane, mask=inside, eviction_policy=FIRST, cache_modifier=PAST).to(tl.float32)
    value = gate / (1.0 + tl.exp2(gate * SCALE)) * up
    tl.store(out + row * n + start + lane, value, mask=inside, eviction_policy=FIRST)


def kernel_function(x):
    n = x.shape[-1] // 2
    out = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    rows = x.numel() // (2 * n)
    blocks = triton.cdiv(n, CONFIG["BLOCK"])
    swiglu[(rows * blocks,)](x, out, n, blocks, **CONFIG)
    return out
