# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# A kernel below a version check, jit as a call, device assertions, types promoted by the host.
import torch
import triton
import triton.language as tl

if hasattr(tl, 'make_tensor_descriptor'):
    @triton.jit(do_not_specialize=['n'])
    def softmax_row(x, y, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
        tl.static_assert(BLOCK >= 1)
        tl.device_assert(n > 0, 'columns')
        tl.assume(n > 0)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, x.dtype), device=x.device)
    softmax_row[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
