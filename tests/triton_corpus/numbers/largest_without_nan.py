# problem: max_pool3d
# status: incorrect
# stage: search_gate
# reason: wrong result
# A maximum that drops NaN, where the reference keeps it.
import torch
import triton
import triton.language as tl


@triton.jit
def pool(x, y, count, D, H, W, OD, OH, OW, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ow = at % OW
    oh = at // OW % OH
    od = at // (OW * OH) % OD
    plane = at // (OW * OH * OD)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for tap in range(27):
        d = od * 2 - 1 + tap // 9 * 3
        h = oh * 2 - 1 + tap // 3 % 3 * 3
        w = ow * 2 - 1 + tap % 3 * 3
        inside = (d >= 0) & (d < D) & (h >= 0) & (h < H) & (w >= 0) & (w < W) & (at < count)
        where = ((plane * D + d) * H + h) * W + w
        v = tl.load(x + where, mask=inside, other=float("-inf")).to(tl.float32)
        largest = tl.maximum(largest, v)
    tl.store(y + at, largest, mask=at < count)


def kernel_function(x):
    n, c, *extents = x.shape
    sizes = [(extent + 2 - 7) // 2 + 1 for extent in extents]
    y = torch.empty((n, c, *sizes), dtype=x.dtype, device=x.device)
    pool[(triton.cdiv(y.numel(), 1024),)](x, y, y.numel(), *extents, *sizes, BLOCK=1024)
    return y
