"""Matrix product, one tile a program: pointers, an asynchronous pipeline over K, tiles in groups for L2.

GROUP rows of tiles run down before the next column, so that the programs that run together share their
inputs. Rows and columns past the end read the first ones again, so only the last step over K is masked, and
not even that where BLOCK_K divides K. Any shape and stride 1 along the last dimension; fp32 accumulation;
fp32 inputs are multiplied as fp32. Written for kernel-evo from the definition.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "BLOCK_M": 128,
    "BLOCK_N": 256,
    "BLOCK_K": 64,
    "GROUP": 8,
    "num_warps": 8,
    "num_stages": 4,
}
SPACE = {
    "BLOCK_M": [64, 128, 256],
    "BLOCK_N": [64, 128, 256],
    "BLOCK_K": [32, 64, 128],
    "GROUP": [1, 2, 4, 8, 16],
    "num_warps": [4, 8],
    "num_stages": [2, 3, 4, 5, 6],
}
SINGLE = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "GROUP": 8, "num_warps": 8, "num_stages": 2}  # fp32


@triton.jit
def product(a, b, out, M, N, K, EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    top = pid // (GROUP * across) * GROUP
    tall = tl.minimum(down - top, GROUP)
    m = (top + pid % (GROUP * across) % tall) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid % (GROUP * across) // tall * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    rows = a + ((m % M).to(tl.int64) * K)[:, None] + k[None, :]
    columns = b + k.to(tl.int64)[:, None] * N + (n % N)[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            left = tl.load(rows)
            right = tl.load(columns)
        else:
            left = tl.load(rows, mask=k[None, :] < K - start, other=0.0)
            right = tl.load(columns, mask=k[:, None] < K - start, other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
        rows += BLOCK_K
        columns += BLOCK_K * N
    at = out + m.to(tl.int64)[:, None] * N + n[None, :]
    tl.store(at, sums.to(out.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def kernel_function(a, b):
    """a [M, K], b [K, N] -> [M, N]."""
    (rows, depth), columns = a.shape, b.shape[1]
    config = SINGLE if a.dtype == torch.float32 else CONFIG
    out = torch.empty((rows, columns), device=a.device, dtype=a.dtype)
    tiles = triton.cdiv(rows, config["BLOCK_M"]) * triton.cdiv(columns, config["BLOCK_N"])
    product[(tiles,)](a, b, out, rows, columns, depth, EVEN_K=depth % config["BLOCK_K"] == 0, **config)
    return out
