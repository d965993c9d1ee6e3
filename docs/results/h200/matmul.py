"""Matrix product by the copy engine: one program a multiprocessor, each walks over tiles of the result.

Tensor descriptors bring whole tiles to shared memory without addresses in registers and fill what lies
outside with zeros. The result leaves in two halves while the next tile begins, which leaves room for one
more stage. Tiles go in groups of GROUP rows for L2. Descriptors want rows of a multiple of 16 bytes; other
shapes, and fp32, take a plain kernel of one small tile a program. fp32 accumulation. Written for kernel-evo
from the definition.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {
    "BLOCK_M": 128,
    "BLOCK_N": 256,
    "BLOCK_K": 64,
    "GROUP": 8,
    "num_warps": 8,
    "num_stages": 3,
}
SPACE = {
    "BLOCK_M": [64, 128, 256],
    "BLOCK_N": [64, 128, 256],
    "BLOCK_K": [32, 64, 128],
    "GROUP": [1, 2, 4, 8, 16],
    "num_warps": [4, 8],
    "num_stages": [2, 3, 4, 5, 6],
}
MULTIPROCESSORS = 132  # of an H200; right on any device, best where it is true


@triton.jit
def place(tile, down, across, GROUP: tl.constexpr):
    """Row and column of a tile: down GROUP rows of tiles, then the next column."""
    top = tile // (GROUP * across) * GROUP
    tall = tl.minimum(down - top, GROUP)
    return top + tile % (GROUP * across) % tall, tile % (GROUP * across) // tall


@triton.jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), down * across, PROGRAMS, flatten=True):
        i, j = place(tile, down, across, GROUP)
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for k in range(0, K, BLOCK_K):
            left = a.load([i * BLOCK_M, k])
            right = b.load([k, j * BLOCK_N])
            sums = tl.dot(left, right, sums)
        halves = tl.permute(tl.reshape(sums, [BLOCK_M, 2, BLOCK_N // 2]), [0, 2, 1])
        first, second = tl.split(halves)
        out.store([i * BLOCK_M, j * BLOCK_N], first.to(out.dtype))
        out.store([i * BLOCK_M, j * BLOCK_N + BLOCK_N // 2], second.to(out.dtype))


@triton.jit
def small_product(a, b, out, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    k = tl.arange(0, BLOCK_K)
    sums = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in range(0, K, BLOCK_K):
        row, column = start + k[:, None], start + k[None, :]
        left = tl.load(a + m.to(tl.int64) * K + column, mask=(m < M) & (column < K), other=0.0)
        right = tl.load(b + row.to(tl.int64) * N + n, mask=(row < K) & (n < N), other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
    tl.store(out + m.to(tl.int64) * N + n, sums.to(out.dtype.element_ty), mask=(m < M) & (n < N))


def kernel_function(a, b):
    """a [M, K], b [K, N] -> [M, N]."""
    (rows, depth), columns = a.shape, b.shape[1]
    out = torch.empty((rows, columns), device=a.device, dtype=a.dtype)
    if a.dtype == torch.float32 or depth % 8 or columns % 8:
        small_product[(triton.cdiv(columns, 64), triton.cdiv(rows, 64))](a, b, out, rows, columns, depth, BLOCK=64, BLOCK_K=32, num_warps=4)
        return out
    m, n, k = CONFIG["BLOCK_M"], CONFIG["BLOCK_N"], CONFIG["BLOCK_K"]
    programs = min(MULTIPROCESSORS, triton.cdiv(rows, m) * triton.cdiv(columns, n))
    product[(programs,)](
        TensorDescriptor.from_tensor(a, [m, k]),
        TensorDescriptor.from_tensor(b, [k, n]),
        TensorDescriptor.from_tensor(out, [m, n // 2]),
        rows, columns, depth, PROGRAMS=programs, **CONFIG,
    )  # fmt: skip
    return out
