# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# The output is a transposed view of what was allocated.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_to_columns(x, y, n, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at * rows + row, e / tl.sum(e, 0), mask=at < n)


def kernel_function(x):
    y = torch.empty(x.shape[::-1], dtype=x.dtype, device=x.device)
    softmax_to_columns[x.shape[:1]](x, y, x.shape[1], x.shape[0], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y.t()
