# problem: rms_norm_rows
# status: correct
# stage: promotion_gate
# reason: not timed
# An operator class in the style of a library: static methods, an alias as entry, custom_fwd.
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


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def plan(n):
        block = triton.next_power_of_2(n)
        return block, 4 if block < 2048 else 8 if block < 8192 else 16

    @staticmethod
    def forward(ctx, x, weight):
        shape = x.shape
        x = x.view(-1, shape[-1])
        block, warps = RMSNorm.plan(shape[-1])
        y = torch.empty_like(x)
        rms_row[(x.shape[0],)](x, weight, y, shape[-1], BLOCK=block, num_warps=warps)
        ctx.save_for_backward(x, weight)
        return y.view(*shape)


kernel_function = RMSNorm.apply
