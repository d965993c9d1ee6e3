# problem: rms_norm_rows
# status: correct
# stage: promotion_gate
# reason: not timed
# Squares of parts added by atomics into a buffer of zeros, in float32; a second launch scales.
import torch
import triton
import triton.language as tl


@triton.jit
def squares(x, total, n, PART: tl.constexpr):
    row = tl.program_id(1)
    at = tl.program_id(0) * PART + tl.arange(0, PART)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.atomic_add(total + row, tl.sum(v * v), sem="relaxed")


@triton.jit
def scaled(x, weight, y, total, n, eps, PART: tl.constexpr):
    row = tl.program_id(1)
    at = tl.program_id(0) * PART + tl.arange(0, PART)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, v * tl.rsqrt(tl.load(total + row) / n + eps) * w, mask=at < n)


def kernel_function(x, weight, eps: float = 1e-6):
    rows, n = x.shape
    total = torch.zeros(rows, dtype=torch.float32, device=x.device)
    y = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(n, meta["PART"]), rows)  # noqa: E731
    squares[grid](x, total, n, PART=2048)
    scaled[grid](x, weight, y, total, n, eps, PART=2048)
    return y
