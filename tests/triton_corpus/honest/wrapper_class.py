# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# The entry is an object of a class with a table of configurations.
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


class RowSoftmax:
    table = {True: dict(num_warps=8), False: dict(num_warps=4)}

    def __init__(self, wide_from: int = 4096):
        self.wide_from = wide_from

    def _block(self, n):
        return triton.next_power_of_2(n)

    def __call__(self, x):
        y = x.new_empty(x.size())
        meta = {"BLOCK": self._block(x.size(-1)), **self.table[x.size(-1) > self.wide_from]}
        softmax_row[lambda META: (x.size(0),)](x, y, x.size(-1), **meta)
        return y


kernel_function = RowSoftmax()
