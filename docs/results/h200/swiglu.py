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
    "BLOCK": 4096,
    "STREAM": 0,
    "num_warps": 16,
    "TILES": 2,
}
SPACE = {
    "BLOCK": [256, 512, 1024, 2048, 4096, 8192, 16384],
    "STREAM": [0, 1, 2],
    "num_warps": [1, 2, 4, 8, 16],
    "TILES": [1, 2, 4, 8],
}


@triton.jit
def swiglu(x, out, n, blocks, BLOCK: tl.constexpr, STREAM: tl.constexpr, tiles, TILES: tl.constexpr):
    for tile in tl.range((tl.num_programs(0) - 1 - tl.program_id(0)) * TILES, tl.minimum((tl.num_programs(0) - 1 - tl.program_id(0)) * TILES + TILES, tiles)):
        x_tile = x
        FIRST: tl.constexpr = "evict_first" if STREAM == 1 else ""
        PAST: tl.constexpr = ".cg" if STREAM == 2 else ""
        row = (tl.cast(tile, tl.int32) // blocks).to(tl.int64)
        start = tl.cast(tile, tl.int32) % blocks * BLOCK
        lane = tl.arange(0, BLOCK)
        inside = lane < n - start
        x_tile += row * 2 * n + start
        gate = tl.load(x_tile + lane, mask=inside, eviction_policy=FIRST, cache_modifier=PAST).to(tl.float32)
        up = tl.load(x_tile + n + lane, mask=inside, eviction_policy=FIRST, cache_modifier=PAST).to(tl.float32)
        value = gate / (1.0 + tl.exp2(gate * SCALE)) * up
        tl.store(out + row * n + start + lane, value, mask=inside, eviction_policy=FIRST)


def kernel_function(x):
    n = x.shape[-1] // 2
    out = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    rows = x.numel() // (2 * n)
    blocks = triton.cdiv(n, CONFIG["BLOCK"])
    swiglu[(triton.cdiv(rows * blocks, CONFIG["TILES"]),)](x, out, n, blocks, tiles=rows * blocks, **CONFIG)
    return out
