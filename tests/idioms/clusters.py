# Clusters of two programs, and a limit on registers.
# case: x=float32[64,2048] -> float32[64,2048]
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


def kernel_function(x):
    y = torch.empty_like(x)
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, y, 0.5, n, BLOCK=1024, num_ctas=2, num_warps=4, maxnreg=64)
    return y
