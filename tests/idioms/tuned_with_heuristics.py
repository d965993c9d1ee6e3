# Autotune over heuristics; an accumulator that the tuner would reset; import names of their own.
# case: x=float32[4096] -> float32[1]
from torch import zeros
from triton import Config, autotune, cdiv, heuristics, jit
from triton import language as T


@autotune([Config(dict(BLOCK=b), num_warps=w) for b in (512, 1024) for w in (4, 8)], key=["n"], reset_to_zero=["total"])
@heuristics(values={"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
@jit
def sum_up(x, total, n, BLOCK: T.constexpr, EVEN: T.constexpr):
    at = T.program_id(0) * BLOCK + T.arange(0, BLOCK)
    v = T.load(x + at) if EVEN else T.load(x + at, mask=at < n, other=0.0)
    T.atomic_add(total, T.sum(v, axis=0))


def kernel_function(x):
    total = zeros(1, device=x.device, dtype=x.dtype)
    n = x.numel()
    sum_up[lambda meta: (cdiv(n, meta["BLOCK"]),)](x, total, n)
    return total
