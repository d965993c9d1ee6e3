# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# functools.partial makes the entry; a lambda makes the grid; keywords only.
import functools

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


def run(kernel, x, *, warps, grid=lambda meta: (meta["ROWS_"],)):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch = functools.partial(kernel[(x.shape[0], 1, 1)], n=x.shape[1], num_warps=warps)
    launch(x=x, y=y, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


kernel_function = functools.partial(run, softmax_row, warps=8)
