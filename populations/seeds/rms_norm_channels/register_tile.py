"""RMS norm over the channels of NCHW images: all channels of some pixels in registers, one read, one write.

Written for kernel-evo from the definition. A program takes all channels of PIXELS neighbouring pixels: the
pixels lie side by side in memory, the channels are what is summed, in float32. More channels than a tile of
TILE elements holds are read twice, a few at a time.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(1e-5)
CONFIG = {
    "PIXELS": 64,
    "TILE": 16384,
    "num_warps": 4,
}
SPACE = {
    "PIXELS": [32, 64, 128, 256, 512],
    "TILE": [8192, 16384, 32768],
    "num_warps": [2, 4, 8, 16, 32],
}


@triton.jit
def norm_tile(x, out, channels, pixels, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    begin = tl.program_id(1).to(tl.int64) * channels * pixels + tl.program_id(0) * PIXELS
    channel = tl.arange(0, CHANNELS)[:, None]
    pixel = tl.arange(0, PIXELS)[None, :]
    inside = (channel < channels) & (pixel < pixels - tl.program_id(0) * PIXELS)
    at = channel * pixels + pixel
    value = tl.load(x + begin + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / channels + EPS)
    tl.store(out + begin + at, value * scale[None, :], mask=inside)


@triton.jit
def norm_many_channels(x, out, channels, pixels, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    begin = tl.program_id(1).to(tl.int64) * channels * pixels + tl.program_id(0) * PIXELS
    channel = tl.arange(0, CHANNELS)[:, None]
    pixel = tl.arange(0, PIXELS)[None, :]
    existing = pixel < pixels - tl.program_id(0) * PIXELS
    at = channel * pixels + pixel
    squares = tl.zeros([CHANNELS, PIXELS], tl.float32)
    for first in range(0, channels, CHANNELS):
        inside = existing & (channel < channels - first)
        value = tl.load(x + begin + first * pixels + at, mask=inside, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / channels + EPS)
    for first in range(0, channels, CHANNELS):
        inside = existing & (channel < channels - first)
        value = tl.load(x + begin + first * pixels + at, mask=inside).to(tl.float32)
        tl.store(out + begin + first * pixels + at, value * scale[None, :], mask=inside)


def kernel_function(x):
    batch, channels = x.shape[:2]
    pixels = x.numel() // (batch * channels)
    out = torch.empty_like(x)
    width = CONFIG["PIXELS"]
    grid = (triton.cdiv(pixels, width), batch)
    tile = {"PIXELS": width, "num_warps": CONFIG["num_warps"]}
    block = triton.next_power_of_2(channels)
    if block * width > CONFIG["TILE"]:
        few = max(1, CONFIG["TILE"] // width // 4)
        norm_many_channels[grid](x, out, channels, pixels, CHANNELS=few, **tile)
        return out
    norm_tile[grid](x, out, channels, pixels, CHANNELS=block, **tile)
    return out
