# Two outputs, one parameter, an optional pointer that is None.
# case: x=bfloat16[64,4096] residual=bfloat16[64,4096]; weight=bfloat16[4096] -> bfloat16[64,4096] bfloat16[64,4096]
import torch
import triton
import triton.language as tl


@triton.jit
def add_norm(x, r, w, bias, out, total, n, eps, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    m = at < n
    t = tl.load(x + row + at, mask=m, other=0.0).to(tl.float32) + tl.load(r + row + at, mask=m, other=0.0).to(tl.float32)
    tl.store(total + row + at, t.to(tl.bfloat16), mask=m)
    t = t.to(tl.bfloat16).to(tl.float32)
    scale = tl.rsqrt(tl.sum(t * t, axis=0) / n + eps)
    o = t * scale * tl.load(w + at, mask=m).to(tl.float32)
    if HAS_BIAS:
        o += tl.load(bias + at, mask=m)
    tl.store(out + row + at, o.to(tl.bfloat16), mask=m)


def kernel_function(x, residual, weight, bias=None, eps=1e-6):
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    normed, total = torch.empty_like(x), torch.empty_like(x)
    n = x.shape[-1]
    add_norm[(x.shape[0],)](
        x, residual, weight, bias, normed, total, n, eps,
        BLOCK=triton.next_power_of_2(n), HAS_BIAS=bias is not None, num_warps=8,
    )
    return normed, total
