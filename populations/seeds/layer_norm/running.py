"""Layer norm of each row with gain and bias: running moments in one pass over chunks, scaling in a second.

Written for kernel-evo from the definition. Every lane keeps a mean and a sum of squared differences of its
own and updates them by Welford's rule, so nothing cancels; they are merged when the row ends. No lane is
wasted on padding up to a power of two but in the last chunk, and few registers are held. The second pass
goes backwards, over what L1 and L2 still hold. Accumulation in float32.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-5)
CONFIG = {
    "BLOCK": 2048,
    "num_warps": 4,
}
SPACE = {
    "BLOCK": [512, 1024, 2048, 4096, 8192],
    "num_warps": [1, 2, 4, 8, 16],
}


@triton.jit
def norm_running(x, weight, bias, out, n, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    steps = 0.0
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, other=0.0, eviction_policy="evict_last")
        steps += 1.0
        ahead = tl.where(inside, value.to(tl.float32) - mean, 0.0)
        step = ahead * (1.0 / steps)
        squares += ahead * (ahead - step)
        mean += step
    count = ((n - 1 - lane) // BLOCK + 1).to(tl.float32)  # elements that a lane has seen
    count = tl.where(lane < n, count, 0.0)
    middle = tl.sum(mean * count, axis=0) / n
    apart = mean - middle
    squares = tl.where(lane < n, squares + count * apart * apart, 0.0)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + EPS)
    last = (n - 1) // BLOCK * BLOCK
    for back in range(0, n, BLOCK):
        start = last - back
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        gain = tl.load(weight + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        shift = tl.load(bias + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        value = (value - middle) * scale * gain + shift
        tl.store(out + start + lane, value, mask=inside, cache_modifier=".cs")


def kernel_function(x, weight, bias):
    n = x.shape[-1]
    out = torch.empty_like(x)
    norm_running[(x.numel() // n,)](x, weight, bias, out, n, **CONFIG)
    return out
