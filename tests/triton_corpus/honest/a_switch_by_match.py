# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# match, walrus, comprehension, generator, lru_cache over numbers, warnings: plain Python about
# launches.
import itertools
import warnings
from functools import lru_cache

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


@lru_cache(maxsize=None)
def settings(n: int, capability: tuple):
    match capability:
        case (major, _) if major >= 9:
            warps = 8
        case (8, _):
            warps = 4
        case _:
            warnings.warn("an old device")
            warps = 2
    if (block := triton.next_power_of_2(n)) > 1 << 20:
        raise NotImplementedError(f"{n} columns")
    return {"BLOCK": block, "num_warps": next(w for w in itertools.chain([warps], [1]) if w * 32 <= max(32, block))}


def kernel_function(x):
    y, n = torch.empty_like(x), x.shape[-1]
    try:
        chosen = settings(n, torch.cuda.get_device_capability(x.device))
    except NotImplementedError:
        return None
    softmax_row[tuple([x.shape[0]])](*(x, y), n, **{key: value for key, value in chosen.items()})
    return y
