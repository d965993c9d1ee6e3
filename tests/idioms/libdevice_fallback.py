# libdevice under an import that falls back; a reduction and a scan with combine functions of their own.
# case: x=float32[32,256] -> float32[32,256] float32[32]
import torch
import triton
import triton.language as tl

try:
    from triton.language.extra import libdevice
except ImportError:
    from triton.language.extra.cuda import libdevice


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def scan(x_ptr, y_ptr, top_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = libdevice.tanh(tl.load(x_ptr + row * n + at, mask=at < n, other=0.0))
    tl.store(y_ptr + row * n + at, tl.associative_scan(v, 0, add), mask=at < n)
    tl.store(top_ptr + row, tl.reduce(v, 0, larger))


def kernel_function(x):
    y = torch.empty_like(x)
    top = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    scan[(x.shape[0],)](x, y, top, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y, top
