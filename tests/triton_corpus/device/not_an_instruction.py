# problem: softmax
# status: uncompilable
# stage: build
# reason: softmax_row: the assembler says: Not a name of any known instruction: 'softmax'
# Assembly that no assembler knows.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    e = tl.inline_asm_elementwise("softmax.f32 $0, $1;", "=f,f", [e], tl.float32, True, 1)
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    softmax_row[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
