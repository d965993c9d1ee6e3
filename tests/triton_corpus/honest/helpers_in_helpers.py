# problem: layer_norm
# status: correct
# stage: promotion_gate
# reason: not timed
# Device functions that call device functions, results as tuples, a constexpr table, static_range,
# static_assert.
import torch
import triton
import triton.language as tl

TABLE: tl.constexpr = tl.constexpr((1, 2))
EPS = tl.constexpr(1e-5)


@triton.jit
def total(v):
    return tl.sum(v, axis=0)


@triton.jit
def moments(v, inside, n):
    mean = total(v) / n
    centred = tl.where(inside, v - mean, 0.0)
    return mean, total(centred * centred) / n


@triton.jit
def layer_row(x, weight, bias, y, n, BLOCK: tl.constexpr, TIMES: tl.constexpr = 1):
    tl.static_assert(BLOCK >= 1, "an empty block")
    row = tl.program_id(0)
    at = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    inside = at < n
    for time in tl.static_range(TIMES):
        v = tl.load(x + row * n + at, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        mean, variance = moments(v, inside, n)
        w = tl.load(weight + at, mask=inside).to(tl.float32)
        b = tl.load(bias + at, mask=inside).to(tl.float32)
        out = tl.fma((v - mean) * tl.rsqrt(variance + EPS), w, b)
    tl.store(y + row * n + at, out.to(y.type.element_ty), mask=inside)


def kernel_function(x, weight, bias):
    y = torch.empty_like(x)
    rows, n = x.shape
    layer_row[(rows,)](x, weight, bias, y, n, BLOCK=triton.next_power_of_2(n))
    return y
