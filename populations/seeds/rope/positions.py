"""Rotary position embedding, two-halves layout: sines and cosines held in registers over several heads.

Written for kernel-evo from the definition. A program takes some positions and HEADS heads: the two halves
of cosine and sine are read once, then each head's two halves are read, rotated in float32 and written.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "TILE": 2048,
    "HEADS": 4,
    "num_warps": 4,
}
SPACE = {
    "TILE": [512, 1024, 2048, 4096, 8192],
    "HEADS": [1, 2, 4, 8, 16, 32],
    "num_warps": [1, 2, 4, 8],
}


@triton.jit
def rotate(
    x, cos, sin, out, heads, length, half,
    HEADS: tl.constexpr, POSITIONS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * POSITIONS
    position = tl.arange(0, POSITIONS)[:, None]
    column = tl.arange(0, HALF)[None, :]
    inside = (position < length - place) & (column < half)
    at = (place + position) * 2 * half + column
    cos_first = tl.load(cos + at, mask=inside, eviction_policy="evict_last").to(tl.float32)
    cos_second = tl.load(cos + at + half, mask=inside, eviction_policy="evict_last").to(tl.float32)
    sin_first = tl.load(sin + at, mask=inside, eviction_policy="evict_last").to(tl.float32)
    sin_second = tl.load(sin + at + half, mask=inside, eviction_policy="evict_last").to(tl.float32)
    head = tl.program_id(1) * HEADS
    begin = head.to(tl.int64) * length * 2 * half
    for _ in range(tl.minimum(HEADS, heads - head)):
        first = tl.load(x + begin + at, mask=inside, eviction_policy="evict_first").to(tl.float32)
        second = tl.load(x + begin + at + half, mask=inside, eviction_policy="evict_first").to(tl.float32)
        turned = first * cos_first - second * sin_first
        tl.store(out + begin + at, turned, mask=inside, cache_modifier=".cs")
        turned = second * cos_second + first * sin_second
        tl.store(out + begin + at + half, turned, mask=inside, cache_modifier=".cs")
        begin += length * 2 * half


def kernel_function(x, cos, sin):
    length, dim = x.shape[-2:]
    heads = x.numel() // (length * dim)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(dim // 2)
    positions = min(max(1, CONFIG["TILE"] // block), triton.next_power_of_2(length))
    grid = (triton.cdiv(length, positions), triton.cdiv(heads, CONFIG["HEADS"]))
    rotate[grid](
        x, cos, sin, out, heads, length, dim // 2,
        HEADS=CONFIG["HEADS"], POSITIONS=positions, HALF=block, num_warps=CONFIG["num_warps"],
    )  # fmt: skip
    return out
