# An entry with a name of its own, found with --entry; a dispatch on dtype; a keyword-only argument.
# entry: relu_forward
# case: x=float16[1000] -> float16[1000]
import functools

import torch
import triton
import triton.language as tl

TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr, DTYPE: tl.constexpr, ACTIVATION: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    if ACTIVATION == "relu":
        v = tl.maximum(v, 0.0)
    tl.store(y + at, v.to(DTYPE), mask=at < n)


@functools.lru_cache(maxsize=None)
def block_of(n):
    return 128 if n < 4096 else 1024


def relu_forward(x, *, activation="relu"):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = block_of(x.numel())
    with torch.cuda.device(x.device.index):
        relu[(triton.cdiv(x.numel(), BLOCK), 1)](x, y, x.numel(), BLOCK, TYPES[x.dtype], ACTIVATION=activation)
    return y
