"""Transposed 3x3x3 convolution, stride 2, padding 1, dilation 2: zeros by a fill, inputs with channels last.

Output coordinate o gets input i through tap k where o = 2 (i + k) - 1: only odd coordinates get anything,
and those are a plain 3x3x3 convolution with zero padding of 1 and the taps reversed. The output is filled
with zeros at the speed of memory, the input copied to channels-last with its border of zeros (it then lies
in L2), the filters to [tap][filter][channel]. A program takes POINTS inputs of one plane and 64 filters,
reads 27 shifted tiles with wide loads and no masks (from L1 where num_stages is 1, else copied ahead from
L2), sums the products on the tensor cores with fp32 accumulation, and writes (value, 0) pairs over the
quarter of the rows that have values. Written for kernel-evo from the definition.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "POINTS": 128,
    "num_warps": 4,
    "num_stages": 2,
}
SPACE = {
    "POINTS": [64, 128, 256],
    "num_warps": [4, 8],
    "num_stages": [1, 2, 3, 4, 5],
}
FILTERS = 64  # the height of one wgmma
CHANNELS = 32


@triton.jit
def border_and_turn(x, turned, channels, depth, height, width, ROW: tl.constexpr, CHANNELS: tl.constexpr):
    """[N, C, D, H, W] -> [N, D + 2, H + 2, W + 2, C padded]: one row per program."""
    row = tl.program_id(0)
    h = row % (height + 2)
    d = row // (height + 2) % (depth + 2)
    n = row // ((height + 2) * (depth + 2))
    w = tl.program_id(1) * ROW + tl.arange(0, ROW)
    c = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    real = tl.where((h > 0) & (h <= height) & (d > 0) & (d <= depth), channels, 0)  # none in the border
    inside = (w > 0) & (w <= width)
    x += n.to(tl.int64) * (channels * depth * height * width)
    at = ((c[:, None] * depth + d - 1) * height + h - 1) * width + w[None, :] - 1
    values = tl.load(x + at, mask=inside[None, :] & (c < real)[:, None], other=0.0)
    padded = tl.num_programs(2) * CHANNELS
    turned += row.to(tl.int64) * ((width + 2) * padded)
    tl.store(turned + w[:, None] * padded + c[None, :], tl.trans(values), mask=(w < width + 2)[:, None])


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
def convolve(points, weight, out, filters, depth, height, width, tiles, steps,
             CHUNKS: tl.constexpr, FILTERS: tl.constexpr, CHANNELS: tl.constexpr,
             POINTS: tl.constexpr):  # fmt: skip
    tile = tl.program_id(0) % tiles
    d = tl.program_id(0) // tiles % depth
    n = tl.program_id(0) // (tiles * depth)
    PADDED: tl.constexpr = CHUNKS * CHANNELS
    last = height * width - 1
    point = tl.minimum(tile * POINTS + tl.arange(0, POINTS), last)
    corner = (point // width) * (width + 2) + point % width
    c = tl.arange(0, CHANNELS)[None, :]
    first = tl.program_id(1) * FILTERS
    f = tl.arange(0, FILTERS)[:, None]
    points += ((n * (depth + 2) + d) * (height + 2)).to(tl.int64) * ((width + 2) * PADDED)
    points += corner[:, None] * PADDED + c
    weight += (first + f) * PADDED + c
    rows = tl.num_programs(1) * FILTERS
    sums = tl.zeros([FILTERS, POINTS], tl.float32)
    for step in range(steps):
        tap = step // CHUNKS
        chunk = step % CHUNKS * CHANNELS
        shift = (tap // 9 * (height + 2) + tap // 3 % 3) * (width + 2) + tap % 3
        values = tl.load(points + (shift * PADDED + chunk))
        taps = tl.load(weight + (tap * rows * PADDED + chunk))
        sums = tl.dot(taps, tl.trans(values), sums, input_precision="ieee")

    values = sums.to(out.dtype.element_ty)
    pairs = tl.reshape(tl.join(values, tl.zeros_like(values)), [FILTERS, 2 * POINTS])
    out_width = 2 * width + 1
    plane = (2 * height + 1) * out_width
    volume = (2 * depth + 1) * plane
    place = tl.arange(0, 2 * POINTS)[None, :]
    point = tile * POINTS + place // 2
    at = (2 * (point // width) + 1) * out_width + 2 * (point % width) + 1 + place % 2
    out += (n * filters + first).to(tl.int64) * volume + (2 * d + 1) * plane
    tl.store(out + (f * volume + at), pairs, mask=(f < filters - first) & (point <= last))


def kernel_function(x, weight):
    """x [N, C, D, H, W], weight [C, F, 3, 3, 3] -> [N, F, 2 D + 1, 2 H + 1, 2 W + 1]."""
    batch, channels, depth, height, width = x.shape
    filters = weight.shape[1]
    chunks = triton.cdiv(channels, CHANNELS)
    groups = triton.cdiv(filters, FILTERS)
    rows = batch * (depth + 2) * (height + 2)
    turned = torch.empty((rows, width + 2, chunks * CHANNELS), device=x.device, dtype=x.dtype)
    row = min(64, triton.next_power_of_2(width + 2))
    border_and_turn[(rows, triton.cdiv(width + 2, row), chunks)](
        x, turned, channels, depth, height, width, ROW=row, CHANNELS=CHANNELS, num_warps=2
    )
    taps = torch.empty((27, groups * FILTERS, chunks * CHANNELS), device=x.device, dtype=x.dtype)
    turn_filters[(27, groups, chunks)](weight, taps, channels, filters, FILTERS=FILTERS, CHANNELS=CHANNELS)

    size = (batch, filters, 2 * depth + 1, 2 * height + 1, 2 * width + 1)
    out = torch.zeros(size, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(height * width, CONFIG["POINTS"])
    convolve[(batch * depth * tiles, groups)](
        turned, taps, out, filters, depth, height, width, tiles, 27 * chunks,
        CHUNKS=chunks, FILTERS=FILTERS, CHANNELS=CHANNELS, **CONFIG,
    )  # fmt: skip
    return out
