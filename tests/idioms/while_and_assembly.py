# A while loop, inline assembly, static_assert and static_range, a grid written without parentheses.
# case: x=float32[128,128] -> float32[128,128]
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, M, N, stride, B: tl.constexpr, STEPS: tl.constexpr):
    tl.static_assert(B >= 16, "tiles of at least 16")
    row = tl.program_id(0) * B
    rows = tl.arange(0, B)
    at = 0
    while at < N:
        where = (row + rows[:, None]) * stride + at + rows[None, :]
        inside = (row + rows[:, None] < M) & (at + rows[None, :] < N)
        v = tl.load(x + where, mask=inside, other=0.0)
        for i in tl.static_range(STEPS):
            v = v + i
        v = tl.inline_asm_elementwise("mul.f32 $0, $1, 0f40000000;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
        tl.store(y + where, v, mask=inside)
        at += B


def kernel_function(x):
    y = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)
    kernel[triton.cdiv(x.shape[0], 32),](x, y, *x.shape, x.stride(0), B=32, STEPS=2)
    return y
