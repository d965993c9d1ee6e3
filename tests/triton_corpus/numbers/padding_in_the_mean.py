# problem: layer_norm
# status: incorrect
# stage: smoke search_gate
# reason: wrong result
# Padding counts among the squares: right only for powers of two.
import torch
import triton
import triton.language as tl


@triton.jit
def layer_row(x, weight, bias, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    centred = v - mean
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + 1e-5)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, centred * scale * w + b, mask=inside)


def kernel_function(x, weight, bias):
    rows, n = x.shape
    y = torch.empty_like(x)
    layer_row[(rows,)](x, weight, bias, y, n, BLOCK=triton.next_power_of_2(n))
    return y
