# problem: softmax
# status: uncompilable
# stage: build
# reason: bytes of shared memory; one on sm_90 has 232448
# A product that nobody needs, with six stages in flight.
import torch
import triton
import triton.language as tl


@triton.jit
def product(x, y, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, n, BK):
        at = k + tl.arange(0, BK)
        a = tl.load(x + rows[:, None] * n + at[None, :])
        b = tl.load(x + at[:, None] * n + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(y + rows[:, None] * n + columns[None, :], acc.to(tl.bfloat16))


def kernel_function(x):
    y = torch.empty_like(x)
    product[(1,)](x, y, x.shape[1] // 128 * 128, BM=128, BN=128, BK=128, num_warps=8, num_stages=6)
    return y
