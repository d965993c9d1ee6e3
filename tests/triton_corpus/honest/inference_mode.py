# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# torch.inference_mode as decorator and as context; a type of the library's own.
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


@torch.inference_mode()
def kernel_function(x):
    with torch.inference_mode(), torch.no_grad():
        y = torch.empty_like(x, requires_grad=False)
        softmax_row[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    torch.cuda.synchronize()
    return y
