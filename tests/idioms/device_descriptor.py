# Descriptors made on the device, with the allocator that Triton asks for.
# case: x=float32[256,512] -> float32[256,512]
from typing import Optional

import torch
import triton
import triton.language as tl


def alloc_fn(size: int, alignment: int, stream: Optional[int]):
    return torch.empty(size, device="cuda", dtype=torch.int8)


@triton.jit
def double(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    src = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    dst = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    dst.store(at, src.load(at) * 2)


def kernel_function(x):
    triton.set_allocator(alloc_fn)
    y = torch.empty_like(x)
    M, N = x.shape
    double[(triton.cdiv(M, 32), triton.cdiv(N, 64))](x, y, M, N, 32, 64)
    return y
