# problem: layer_norm
# status: rejected
# stage: build
# reason: ModelNew has the parameters weight; the problem: norm_weight, norm_bias
# A module whose parameters are not the problem's.
import torch
import triton
import triton.language as tl


@triton.jit
def layer_row(x, weight, bias, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    centred = tl.where(inside, v - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + 1e-5)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, centred * scale * w + b, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(12288))

    def forward(self, x):
        y = torch.empty_like(x)
        layer_row[(x.shape[0],)](x, self.weight, self.weight, y, x.shape[1], BLOCK=16384)
        return y
