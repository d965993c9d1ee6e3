# Heuristics that look at other arguments.
# case: x=float32[100,300] -> float32[100,300]
# case: x=float32[16,1024] -> float32[16,1024]
import torch
import triton
import triton.language as tl


@triton.heuristics({
    "BLOCK": lambda args: triton.next_power_of_2(args["n"]),
    "EVEN": lambda args: args["n"] == triton.next_power_of_2(args["n"]),
    "num_warps": lambda args: 8 if args["n"] > 512 else 4,
})
@triton.jit
def softmax(x, y, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if EVEN:
        v = tl.load(x + row * stride + at)
    else:
        v = tl.load(x + row * stride + at, mask=at < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    y = torch.empty_like(x)
    softmax[(x.shape[0],)](x, y, x.shape[1], x.stride(0))
    return y
