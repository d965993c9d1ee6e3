# Steps beside launches: fills, casts, a copy of a transpose, cat, stack, pad, a table from the host, a range.
# case: x=float16[64,60] w=float32[64] -> float32[64,64]
import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def mix(x, w, table, order, low, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at).to(tl.float32) * tl.load(w + tl.load(order + at))
    v = tl.maximum(v + tl.load(table + at % 4), tl.load(low + at))
    tl.store(out + row * n + at, v + tl.load(out + row * n + at))


def kernel_function(x, w):
    wide = F.pad(x, (1, 3)).contiguous().to(torch.float16)
    turned = wide.t().contiguous()
    both = torch.cat([turned[:32], turned[32:]], dim=0).t().contiguous()
    table = torch.tensor([0.5, 0.25, 0.125, 0.0], device=x.device, dtype=torch.float32)
    order = torch.arange(64, device=x.device, dtype=torch.int32)
    low = torch.full((64,), -float("inf"), device=x.device)
    pair = torch.stack([w, torch.ones_like(w)])
    out = x.new_zeros((64, 64), dtype=torch.float32)
    out.fill_(1.0)
    mix[(64,)](both, pair[0].half().float(), table, order, low, out, 64, BLOCK=64)
    return out
