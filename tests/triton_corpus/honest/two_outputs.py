# problem: rms_norm
# status: correct
# stage: promotion_gate
# reason: not timed
# Two outputs as a list, one allocation cut in two by views.
import torch
import triton
import triton.language as tl


@triton.jit
def add_and_norm(x, residual, weight, normed, total, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    v += tl.load(residual + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(total + row * n + at, v, mask=at < n)
    v = v.to(total.dtype.element_ty).to(tl.float32)
    w = tl.load(weight + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(normed + row * n + at, v * tl.rsqrt(tl.sum(v * v, 0) / n + 1e-6) * w, mask=at < n)


def kernel_function(x, residual, weight):
    both = torch.empty((2, *x.shape), dtype=x.dtype, device=x.device)
    normed, total = both.unbind(0)
    n = x.shape[-1]
    add_and_norm[(x.shape[0],)](x, residual, weight, normed, total, n, BLOCK=triton.next_power_of_2(n))
    return [normed, total]
