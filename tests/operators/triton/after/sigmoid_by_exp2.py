"""GELU in its tanh form, gated: a stream of tiles."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

CONFIG = {"BLOCK": 64, "num_warps": 4}
SPACE = {"BLOCK": [64, 128], "num_warps": [2, 4, 8]}


@triton.jit
def gelu(x):
    u = 0.7978845608 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + libdevice.tanh(u))


@triton.jit
def gelu_kernel(x_ptr, gate_ptr, out_ptr, size, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < size)
    gate = tl.load(gate_ptr + offsets, mask=offsets < size)
    y = gelu(x) / (1.0 + tl.exp2(gate * -1.4426950408889634))
    tl.store(out_ptr + offsets, y, mask=offsets < size)


def kernel_function(x, gate):
    out = torch.empty_like(x)
    size = x.numel()
    grid = lambda meta: (triton.cdiv(size, meta["BLOCK"]),)  # noqa: E731
    gelu_kernel[grid](x, gate, out, size, BLOCK=CONFIG["BLOCK"], num_warps=CONFIG["num_warps"])
    return out
