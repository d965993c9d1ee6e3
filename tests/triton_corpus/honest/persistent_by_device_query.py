# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# A persistent grid sized by the device's properties, asked for at module level; a while loop.
import torch
import triton
import triton.language as tl

PROPERTIES = torch.cuda.get_device_properties(torch.cuda.current_device())
PROGRAMS = PROPERTIES.multi_processor_count


@triton.jit
def softmax_persistent(x, y, rows, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    while row < rows:
        v = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * n + at, e / tl.sum(e, 0), mask=at < n)
        row += tl.num_programs(0)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    softmax_persistent[(min(rows, PROGRAMS),)](x, y, rows, n, BLOCK=triton.next_power_of_2(n))
    return y
