# A module with parameters of its own, as KernelBench has it; views and a stride trick in forward.
# case: x=float32[4,16,512]; weight=float32[512] bias=float32[512] -> float32[4,16,512]
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + row * stride + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(mask, x - mean, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    tl.store(y_ptr + row * stride + at, y * tl.load(w_ptr + at, mask=mask) + tl.load(b_ptr + at, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512))
        self.bias = nn.Parameter(torch.zeros(512))
        self.block = 512

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.view(-1, x.shape[-1])
        y = torch.empty_like(flat)
        affine_kernel[(flat.shape[0],)](flat, self.weight, self.bias, y, flat.shape[1], flat.stride(0), BLOCK=self.block)
        return y.view_as(x)
