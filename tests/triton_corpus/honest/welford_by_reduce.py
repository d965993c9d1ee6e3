# problem: layer_norm
# status: correct
# stage: promotion_gate
# reason: not timed
# Moments by tl.reduce with a combining function over three tensors.
import torch
import triton
import triton.language as tl


@triton.jit
def joined(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count > 0, count_b / tl.maximum(count, 1.0), 0.0)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def layer_row(x, weight, bias, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mean, m2, _ = tl.reduce((v, tl.zeros_like(v), tl.where(inside, 1.0, 0.0)), 0, joined)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, (v - mean) * tl.rsqrt(m2 / n + 1e-5) * w + b, mask=inside)


def kernel_function(x, weight, bias):
    y = torch.empty_like(x)
    layer_row[(x.shape[0],)](x, weight, bias, y, x.shape[1], triton.next_power_of_2(x.shape[1]))
    return y
