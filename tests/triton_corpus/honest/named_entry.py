# problem: linear_gelu
# entry: fused
# status: correct
# stage: promotion_gate
# reason: not timed
# Another entry, asked for by name, beside a kernel_function that is something else.
import torch
import triton
import triton.language as tl


@triton.jit
def erf_gelu(v):
    return 0.5 * v * (1.0 + tl.math.erf(v * 0.7071067811865476))


@triton.jit
def linear_gelu(x, w, b, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        left = tl.load(x + rows[:, None] * K + at[None, :], mask=(rows[:, None] < M) & (at[None, :] < K), other=0.0)
        right = tl.load(
            w + columns[None, :] * K + at[:, None], mask=(columns[None, :] < N) & (at[:, None] < K), other=0.0
        )
        acc = tl.dot(left, right, acc, input_precision="ieee")
    acc += tl.load(b + columns, mask=columns < N, other=0.0)[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y + rows[:, None] * N + columns[None, :], erf_gelu(acc), mask=inside)


def launch(x, weight, bias):
    (M, K), N = x.shape, weight.shape[0]
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    linear_gelu[(triton.cdiv(M, 16), triton.cdiv(N, 32))](x, weight, bias, y, M, N, K, BM=16, BN=32, BK=32)
    return y


def kernel_function(*_):
    raise NotImplementedError


def fused(x, w, b):
    return launch(x, w, b)
