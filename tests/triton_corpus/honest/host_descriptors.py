# problem: gelu_tanh
# status: correct
# stage: promotion_gate
# reason: not timed
# TMA descriptors made by the host from padded tensors.
from triton.tools.tensor_descriptor import TensorDescriptor

import torch
import triton
import triton.language as tl


@triton.jit
def gelu(source, target, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    for column in range(0, N, BN):
        v = source.load([row, column]).to(tl.float32)
        inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
        target.store([row, column], (v / (1 + tl.exp(-2 * inner))).to(tl.bfloat16))


def kernel_function(x):
    rows, n = x.shape
    width = -(-n // 8) * 8
    padded = x.new_zeros(rows, width)
    padded[:, :n].copy_(x)
    y = torch.empty_like(padded)
    block = [8, 256]
    source, target = (TensorDescriptor.from_tensor(t, block) for t in (padded, y))
    gelu[(triton.cdiv(rows, 8),)](source, target, width, *block)
    return y[:, :n].contiguous()
