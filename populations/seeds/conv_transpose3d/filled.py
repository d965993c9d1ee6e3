"""Transposed 3x3x3 convolution, stride 2, padding 1, dilation 2: zeros by a fill, then a dense product.

Output coordinate o gets input i through tap k where o = 2 (i + k) - 1: only odd coordinates get anything,
and those are a plain 3x3x3 convolution with zero padding of 1 and the taps reversed. The output is filled
with zeros at the speed of memory; then each program takes POINTS inputs of one plane and 64 filters, reads
the 27 shifted tiles where they lie (L1 holds them), sums the products on the tensor cores with fp32
accumulation, and writes (value, 0) pairs over the quarter of the rows that have values. Only the filters are
copied first, to [tap][filter][channel]. Written for kernel-evo from the definition.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "POINTS": 128,
    "num_warps": 8,
    "num_stages": 2,
}
SPACE = {
    "POINTS": [64, 128, 256],
    "num_warps": [4, 8],
    "num_stages": [1, 2, 3],
}
FILTERS = 64  # the height of one wgmma
CHANNELS = 32


@triton.jit
def turn_filters(weight, turned, channels, filters, FILTERS: tl.constexpr, CHANNELS: tl.constexpr):
    """[C, F, 27] -> [27 reversed, F padded, C padded]."""
    tap = tl.program_id(0)
    f = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)[:, None]
    c = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    real = (f < filters) & (c < channels)
    values = tl.load(weight + (c * filters + f) * 27 + 26 - tap, mask=real, other=0.0)
    rows = tl.num_programs(1) * FILTERS
    tl.store(turned + (tap * rows + f) * (tl.num_programs(2) * CHANNELS) + c, values)


@triton.jit
def convolve(x, weight, out, channels, filters, depth, height, width, tiles, steps, CHUNKS: tl.constexpr,
             FILTERS: tl.constexpr, CHANNELS: tl.constexpr, POINTS: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0) % tiles
    d = tl.program_id(0) // tiles % depth
    n = tl.program_id(0) // (tiles * depth)
    PADDED: tl.constexpr = CHUNKS * CHANNELS
    area = height * width
    volume = depth * area
    point = tile * POINTS + tl.arange(0, POINTS)
    h = point // width
    w = point % width
    c = tl.arange(0, CHANNELS)
    first = tl.program_id(1) * FILTERS
    f = tl.arange(0, FILTERS)[:, None]
    x += n.to(tl.int64) * channels * volume
    at = c[:, None] * volume + (d * area + point)[None, :]
    weight += (first + f) * PADDED + c[None, :]
    rows = tl.num_programs(1) * FILTERS
    sums = tl.zeros([FILTERS, POINTS], tl.float32)
    for step in range(steps):
        tap = step // CHUNKS
        chunk = step % CHUNKS * CHANNELS
        down, under, beside = tap // 9 - 1, tap // 3 % 3 - 1, tap % 3 - 1
        left = tl.where((d + down >= 0) & (d + down < depth), channels - chunk, 0)  # no channel outside
        there = (h + under >= 0) & (h + under < height) & (w + beside >= 0) & (w + beside < width)
        shift = chunk * volume + down * area + under * width + beside
        values = tl.load(x + shift + at, mask=there[None, :] & (c < left)[:, None], other=0.0)
        taps = tl.load(weight + (tap * rows * PADDED + chunk))
        sums = tl.dot(taps, values, sums, input_precision="ieee")

    values = sums.to(out.dtype.element_ty)
    pairs = tl.reshape(tl.join(values, tl.zeros_like(values)), [FILTERS, 2 * POINTS])
    out_width = 2 * width + 1
    plane = (2 * height + 1) * out_width
    volume = (2 * depth + 1) * plane
    place = tl.arange(0, 2 * POINTS)[None, :]
    point = tile * POINTS + place // 2
    at = (2 * (point // width) + 1) * out_width + 2 * (point % width) + 1 + place % 2
    out += (n * filters + first).to(tl.int64) * volume + (2 * d + 1) * plane
    tl.store(out + (f * volume + at), pairs, mask=(f < filters - first) & (point < area))


def kernel_function(x, weight):
    """x [N, C, D, H, W], weight [C, F, 3, 3, 3] -> [N, F, 2 D + 1, 2 H + 1, 2 W + 1]."""
    batch, channels, depth, height, width = x.shape
    filters = weight.shape[1]
    chunks = triton.cdiv(channels, CHANNELS)
    groups = triton.cdiv(filters, FILTERS)
    taps = torch.empty((27, groups * FILTERS, chunks * CHANNELS), device=x.device, dtype=x.dtype)
    turn_filters[(27, groups, chunks)](weight, taps, channels, filters, FILTERS=FILTERS, CHANNELS=CHANNELS)
    size = (batch, filters, 2 * depth + 1, 2 * height + 1, 2 * width + 1)
    out = torch.zeros(size, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(height * width, CONFIG["POINTS"])
    convolve[(batch * depth * tiles, groups)](
        x, taps, out, channels, filters, depth, height, width, tiles, 27 * chunks,
        CHUNKS=chunks, FILTERS=FILTERS, CHANNELS=CHANNELS, **CONFIG,
    )  # fmt: skip
    return out
