"""RMS norm of rows with a weight, and the row's root mean square beside it."""

import torch
import triton
import triton.language as tl

CONFIG = {"BLOCK": 256}
SPACE = {"BLOCK": [32, 64, 128, 256, 512]}


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, rms_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * n
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    squares = tl.sum(x * x, axis=0) / n
    rms = tl.sqrt(squares + eps)
    tl.store(rms_ptr + row, rms)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
    again = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = again / rms * weight
    tl.store(out_ptr + row * n + cols, y, mask=mask)


def kernel_function(x, weight):
    rows, n = x.shape
    out = torch.empty_like(x)
    rms = torch.zeros((rows,), dtype=torch.float32, device=x.device)
    grid = lambda meta: (rows,)  # noqa: ARG005, E731
    rms_norm_kernel[grid](
        x, weight, out, rms,
        n, 1e-5,
        BLOCK=CONFIG["BLOCK"],
    )  # fmt: skip
    return out, rms
