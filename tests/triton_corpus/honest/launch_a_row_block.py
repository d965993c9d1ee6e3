# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# Rows in up to eight launches over slices of input and output; zip, enumerate and chunk.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    y = torch.empty_like(x)
    n = x.shape[1]
    block = triton.next_power_of_2(n)
    for source, target in zip(x.chunk(8), y.chunk(8), strict=True):
        softmax_row[(source.shape[0],)](source, target, n, BLOCK=block, num_warps=min(16, max(1, block // 256)))
    return y
