"""Tanh-GELU, elementwise: a flat stream of 16-byte loads, each element read once and written once.

Written for kernel-evo from the definition. 0.5 x (1 + tanh u) is x / (1 + exp(-2u)): one exponential and
one division where the tanh costs several of each, and no cancellation, so that it is as accurate in
float32. The factors -2, sqrt(2 / pi) and log2(e) are folded into the two coefficients of the cubic. With
STREAM at 1 what passes through is the first to leave the caches, at 2 inputs go past the first of them.
"""

import torch
import triton
import triton.language as tl

LINEAR = tl.constexpr(-2.3022081981)  # -2 sqrt(2 / pi) log2(e)
CUBIC = tl.constexpr(-0.1029432396)  # 0.044715 times that
CONFIG = {
    "BLOCK": 1024,
    "STREAM": 0,
    "num_warps": 4,
    "maxnreg": 64,
}
SPACE = {
    "BLOCK": [512, 1024, 2048, 4096, 8192, 16384],
    "STREAM": [0, 1, 2],
    "num_warps": [2, 4, 8, 16],
    "maxnreg": [64, 96, 128, 168, 255],
}


@triton.jit
def gelu(x, out, n: tl.constexpr, BLOCK: tl.constexpr, STREAM: tl.constexpr):
    FIRST: tl.constexpr = "evict_first" if STREAM == 1 else ""
    PAST: tl.constexpr = ".cg" if STREAM == 2 else ""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    inside = lane < n - start
    value = tl.load(x + start + lane, mask=inside, eviction_policy=FIRST, cache_modifier=PAST).to(tl.float32)
    power = tl.exp2(value * (LINEAR + CUBIC * value * value))
    tl.store(out + start + lane, value / (1.0 + power), mask=inside, eviction_policy=FIRST)


def kernel_function(x):
    out = torch.empty_like(x)
    n = x.numel()
    gelu[(triton.cdiv(n, CONFIG["BLOCK"]),)](x, out, n, **CONFIG)
    return out
