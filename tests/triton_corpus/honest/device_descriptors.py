# problem: gelu_tanh
# status: correct
# stage: promotion_gate
# reason: not timed
# TMA descriptors made in the kernel, by Triton's allocator; padded to sixteen bytes by the host.
import torch
import triton
import triton.language as tl


def allocate(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


@triton.jit
def gelu(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    row = tl.program_id(0) * BM
    for column in tl.range(0, N, BN):
        v = source.load([row, column]).to(tl.float32)
        inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
        target.store([row, column], (v * tl.sigmoid(2 * inner)).to(tl.bfloat16))


def kernel_function(x):
    triton.set_allocator(allocate)
    rows, n = x.shape
    width = triton.cdiv(n, 8) * 8
    padded = torch.nn.functional.pad(x, (0, width - n)) if width != n else x
    y = torch.empty_like(padded)
    gelu[(triton.cdiv(rows, 8),)](padded, y, rows, width, 8, 256)
    return y[:, :n]
