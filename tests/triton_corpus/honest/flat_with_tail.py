# problem: gelu_tanh
# status: correct
# stage: promotion_gate
# reason: not timed
# Elementwise over the flattened tensor: libdevice's tanh, a constant from math, one masked tail.
import math

import torch
import triton
import triton.language as tl
try:
    from triton.language.extra import libdevice
except ImportError:
    from triton.language.math import libdevice

SCALE = tl.constexpr(math.sqrt(2 / math.pi))


@triton.jit
def gelu(source, target, count, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    at = start + tl.arange(0, BLOCK)
    v = tl.load(source + at, at < count, 0.0).to(tl.float32)
    tl.store(target + at, 0.5 * v * (1 + libdevice.tanh(SCALE * (v + 0.044715 * v * v * v))), at < count)


def kernel_function(x):
    flat = x.reshape(-1)
    out = torch.empty_like(flat)
    gelu[(triton.cdiv(flat.numel(), 4096), 1, 1)](flat, out, flat.numel(), BLOCK=4096, num_warps=8, num_stages=1)
    return out.view_as(x)
