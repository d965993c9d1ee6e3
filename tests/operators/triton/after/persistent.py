"""RMS norm of rows with a weight, and the row's root mean square beside it."""

import torch
import triton
import triton.language as tl

CONFIG = {"PROGRAMS": 528}
SPACE = {"PROGRAMS": [132, 264, 528, 1056]}


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, rms_ptr, n, eps, BLOCK: tl.constexpr, tiles, PROGRAMS: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS):
        x_ptr_tile = x_ptr
        row = tile
        x_ptr_tile += row * n
        cols = tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_ptr_tile + cols, mask=mask, other=0.0).to(tl.float32)
        squares = tl.sum(x * x, axis=0) / n
        rms = tl.sqrt(squares + eps)
        tl.store(rms_ptr + row, rms)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
        again = tl.load(x_ptr_tile + cols, mask=mask, other=0.0).to(tl.float32)
        y = again / rms * weight
        tl.store(out_ptr + row * n + cols, y, mask=mask)


def kernel_function(x, weight):
    rows, n = x.shape
    out = torch.empty_like(x)
    rms = torch.zeros((rows,), dtype=torch.float32, device=x.device)
    rms_norm_kernel[(min(rows, CONFIG["PROGRAMS"]),)](
        x, weight, out, rms,
        n, 1e-5,
        BLOCK=128, tiles=rows, PROGRAMS=CONFIG["PROGRAMS"],
    )  # fmt: skip
    return out, rms
