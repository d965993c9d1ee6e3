# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# Heuristics below autotune with pruning, reset and key; several configurations.
import torch
import triton
import triton.language as tl


def fitting(configs, named_args, **_):
    return [config for config in configs if config.num_warps <= 8] or configs


@triton.autotune(
    configs=[
        triton.Config({"CHUNK": chunk}, num_warps=warps, num_stages=stages)
        for chunk in (1024, 2048)
        for warps in (4, 8, 16)
        for stages in (1, 2)
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": fitting},
    reset_to_zero=["y"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["CHUNK"] == 0})
@triton.jit
def softmax_online(x, y, n, CHUNK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = float("-inf")
    total = 0.0
    for start in tl.range(0, n, CHUNK):
        at = start + tl.arange(0, CHUNK)
        if EVEN:
            v = tl.load(x + row * n + at).to(tl.float32)
        else:
            v = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(v, axis=0))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(v - base), axis=0)
        top = higher
    for start in tl.range(0, n, CHUNK):
        at = start + tl.arange(0, CHUNK)
        v = tl.load(x + row * n + at, mask=at < n).to(tl.float32)
        tl.store(y + row * n + at, tl.exp(v - top) / total, mask=at < n)


def kernel_function(x):
    y = torch.empty_like(x)
    softmax_online[(x.shape[0],)](x, y, x.shape[1])
    return y
