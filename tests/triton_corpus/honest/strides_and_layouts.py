# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# Strides as arguments; contiguous, view, reshape, permute, unsqueeze; an output with strides of its
# own.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_strided(x_ptr, y_ptr, n, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + row * x_row + at * x_column, mask=at < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y_ptr + row * y_row + at * y_column, e / tl.sum(e, 0), mask=at < n)


def kernel_function(x):
    x = x.contiguous().view(-1, x.shape[-1]).unsqueeze(0).permute(1, 0, 2).reshape(x.shape)
    if not x.is_contiguous():
        x = x.contiguous()
    rows, n = x.shape
    y = torch.empty_strided((rows, n), (1, rows), dtype=x.dtype, device=x.device)
    softmax_strided[(rows,)](x, y, n, *x.stride(), *y.stride(), triton.next_power_of_2(n))
    return y
