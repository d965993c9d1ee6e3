"""RMS norm over the channels of NCHW images: tiles come and go by the copy engine, several ahead.

Written for kernel-evo from the definition. A program takes every PROGRAMS-th tile of all channels by PIXELS
neighbouring pixels. Tensor descriptors bring STAGES tiles to shared memory while earlier ones are summed in
float32, so that what is under way costs no registers. Descriptors want a power of two of channels, at most
256, and rows of a multiple of 16 bytes; other shapes, and fp32, are read twice, channel by channel.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

EPS = tl.constexpr(1e-5)
CONFIG = {
    "PIXELS": 128,
    "PROGRAMS": 264,
    "STAGES": 5,
    "num_warps": 4,
}
SPACE = {
    "PIXELS": [32, 64, 128, 256],
    "PROGRAMS": [132, 264, 396, 528],
    "STAGES": [1, 2, 3, 4, 5, 6],
    "num_warps": [1, 2, 4, 8],
}


@triton.jit
def norm_tiles(
    x, out, across, tiles,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, num_stages=STAGES):
        first = tile // across * CHANNELS
        pixel = tile % across * PIXELS
        value = x.load([first, pixel]).to(tl.float32)
        scale = tl.rsqrt(tl.sum(value * value, axis=0) / CHANNELS + EPS)
        out.store([first, pixel], (value * scale[None, :]).to(out.dtype))


@triton.jit
def norm_pixels(x, out, channels, pixels, PIXELS: tl.constexpr):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    inside = pixel < pixels
    x += tl.program_id(1).to(tl.int64) * channels * pixels + pixel
    out += tl.program_id(1).to(tl.int64) * channels * pixels + pixel
    squares = tl.zeros([PIXELS], tl.float32)
    for channel in range(channels):
        value = tl.load(x + channel * pixels, mask=inside, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(squares / channels + EPS)
    for back in range(1, channels + 1):
        at = (channels - back) * pixels
        value = tl.load(x + at, mask=inside).to(tl.float32)
        tl.store(out + at, value * scale, mask=inside)


def kernel_function(x):
    batch, channels = x.shape[:2]
    pixels = x.numel() // (batch * channels)
    out = torch.empty_like(x)
    power = 8 <= channels <= 256 and channels == triton.next_power_of_2(channels)
    if x.dtype == torch.float32 or not power or pixels % 8:
        norm_pixels[(triton.cdiv(pixels, 1024), batch)](x, out, channels, pixels, PIXELS=1024, num_warps=4)
        return out
    block = [channels, CONFIG["PIXELS"]]
    across = triton.cdiv(pixels, CONFIG["PIXELS"])
    norm_tiles[(CONFIG["PROGRAMS"],)](
        TensorDescriptor.from_tensor(x.view(-1, pixels), block),
        TensorDescriptor.from_tensor(out.view(-1, pixels), block),
        across, batch * across, CHANNELS=channels, **CONFIG,
    )  # fmt: skip
    return out
