"""Layer norm of each row with gain and bias: a row in registers as several blocks, one read and one write.

Written for kernel-evo from the definition. A row need not be padded to a power of two: it is PARTS blocks,
unrolled, of which only the last has a rest. Mean first, then the sum of squared differences from it, both
in float32 and from registers, so nothing cancels. A row beyond LONGEST is read three times, in chunks, of
which the second and third are from cache. STREAM says whether what passes through should leave the caches
first.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-5)
CONFIG = {
    "BLOCK": 4096,
    "STREAM": 0,
    "num_warps": 8,
}
SPACE = {
    "BLOCK": [1024, 2048, 4096, 8192],
    "STREAM": [0, 1],
    "num_warps": [2, 4, 8, 16, 32],
}
LONGEST = 16384


@triton.jit
def norm_parts(x, weight, bias, out, n, PARTS: tl.constexpr, BLOCK: tl.constexpr, STREAM: tl.constexpr):
    FIRST: tl.constexpr = "evict_first" if STREAM else ""
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    parts = ()
    sums = tl.zeros([BLOCK], tl.float32)
    for part in tl.static_range(PARTS):
        at = part * BLOCK + lane
        value = tl.load(x + at, mask=at < n, other=0.0, eviction_policy=FIRST).to(tl.float32)
        sums += value
        parts += (value,)
    mean = tl.sum(sums, axis=0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for part in tl.static_range(PARTS):
        apart = tl.where(part * BLOCK + lane < n, parts[part] - mean, 0.0)
        squares += apart * apart
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    for part in tl.static_range(PARTS):
        at = part * BLOCK + lane
        gain = tl.load(weight + at, mask=at < n, eviction_policy="evict_last").to(tl.float32)
        shift = tl.load(bias + at, mask=at < n, eviction_policy="evict_last").to(tl.float32)
        value = (parts[part] - mean) * scale * gain + shift
        tl.store(out + at, value, mask=at < n, eviction_policy=FIRST)


@triton.jit
def norm_long_rows(x, weight, bias, out, n, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        sums += tl.load(x + start + lane, mask=lane < n - start, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, other=0.0).to(tl.float32)
        value = tl.where(inside, value - mean, 0.0)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        gain = tl.load(weight + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        shift = tl.load(bias + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        value = (value - mean) * scale * gain + shift
        tl.store(out + start + lane, value, mask=inside, cache_modifier=".cs")


def kernel_function(x, weight, bias):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    if n > LONGEST:
        block, warps = CONFIG["BLOCK"], CONFIG["num_warps"]
        norm_long_rows[(rows,)](x, weight, bias, out, n, BLOCK=block, num_warps=warps)
        return out
    parts = triton.cdiv(n, CONFIG["BLOCK"])
    norm_parts[(rows,)](x, weight, bias, out, n, PARTS=parts, **CONFIG)
    return out
