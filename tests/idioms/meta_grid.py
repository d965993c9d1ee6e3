# A grid that asks META, numbers from a module-level CONFIG.
# case: x=bfloat16[128,4096] -> bfloat16[128,4096]
import torch
import triton
import triton.language as tl

CONFIG = {
    "BLOCK": 2048,
    "num_warps": 8,
}
SPACE = {
    "BLOCK": [1024, 2048, 4096],
    "num_warps": [4, 8],
}


@triton.jit
def gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = x * tl.sigmoid(1.5957691216 * (x + 0.044715 * x * x * x))
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


def kernel_function(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    grid = lambda META: (triton.cdiv(x.numel(), META["BLOCK"]),)
    gelu[grid](x, y, x.numel(), **CONFIG)
    return y
