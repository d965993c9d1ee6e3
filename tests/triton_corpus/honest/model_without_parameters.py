# problem: rms_norm_rows
# status: correct
# stage: promotion_gate
# reason: not timed
# ModelNew as a plain callable: parameters come as arguments.
import torch
import triton
import triton.language as tl


@triton.jit
def rms_row(x, weight, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=at < n, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) / n + 1e-6)
    tl.store(y + row * n + at, v * scale * w, mask=at < n)


class ModelNew:
    def __init__(self):
        self.eps = 1e-6

    def __call__(self, x, weight):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        rms_row[(x.size(0),)](x, weight, y, x.size(1), BLOCK=triton.next_power_of_2(x.size(1)))
        return y
