"""Causal attention, online softmax: blocks wholly below the diagonal without a mask, then those on it.

A program owns BLOCK_M queries of one head and meets the keys in blocks; weights are powers of two with the
scale folded in, accumulation is fp32, the weights are rounded to the inputs' type for the second product.
Longest rows first within a head, and the heads that share keys follow each other, so keys and values stay in
L2. Where the length is a multiple of the blocks and the inputs are bf16, tensor descriptors move whole
tiles; any other shape, and fp32, goes through masked pointers and small blocks. Written for kernel-evo from
the definition.
"""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {
    "BLOCK_M": 128,
    "BLOCK_N": 64,
    "num_warps": 4,
    "num_stages": 2,
    "maxnreg": 255,
}
SPACE = {
    "BLOCK_M": [64, 128],
    "BLOCK_N": [32, 64, 128],
    "num_warps": [4, 8],
    "num_stages": [1, 2, 3, 4],
    "maxnreg": [128, 168, 208, 255],
}


@triton.jit
def online(scores, value, sums, top, total, scale, MASKED: tl.constexpr, row, key):
    """Take one block of scores (in units of the scale) and values into the running softmax."""
    if MASKED:
        scores = tl.where(key[None, :] <= row[:, None], scores, float("-inf"))
    higher = tl.maximum(top, tl.max(scores, 1) * scale)
    weight = tl.exp2(scores * scale - higher[:, None])
    shrink = tl.exp2(top - higher)
    total = total * shrink + tl.sum(weight, 1)
    sums = sums * shrink[:, None]
    sums = tl.dot(weight.to(value.dtype), value, sums, input_precision="ieee")
    return sums, higher, total


@triton.jit
def tiles(q, k, v, out, length, heads, group, scale, D: tl.constexpr,
          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    blocks = length // BLOCK_M
    block = blocks - 1 - tl.program_id(0) % blocks
    head = tl.program_id(0) // blocks
    shared = (head // heads * (heads // group) + head % heads // group) * length
    first = block * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    query = q.load([head * length + first, 0])
    sums = tl.zeros([BLOCK_M, D], tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    for start in tl.range(0, first, BLOCK_N, disable_licm=True):
        key = start + tl.arange(0, BLOCK_N)
        scores = tl.dot(query, k.load([shared + start, 0]).T)
        value = v.load([shared + start, 0])
        sums, top, total = online(scores, value, sums, top, total, scale, False, row, key)
    for start in range(first, first + BLOCK_M, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        scores = tl.dot(query, k.load([shared + start, 0]).T)
        value = v.load([shared + start, 0])
        sums, top, total = online(scores, value, sums, top, total, scale, True, row, key)
    out.store([head * length + first, 0], (sums * (1.0 / total)[:, None]).to(out.dtype))


@triton.jit
def any_shape(q, k, v, out, length, width, heads, group, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    blocks = tl.cdiv(length, BLOCK)
    first = tl.program_id(0) % blocks * BLOCK
    head = tl.program_id(0) // blocks
    shared = head // heads * (heads // group) + head % heads // group
    k += shared.to(tl.int64) * (length * width)
    v += shared.to(tl.int64) * (length * width)
    row = first + tl.arange(0, BLOCK)
    d = tl.arange(0, D)[None, :]
    at = head.to(tl.int64) * (length * width) + row[:, None] * width + d
    stored = (row < length)[:, None] & (d < width)
    query = tl.load(q + at, mask=stored, other=0.0)
    sums = tl.zeros([BLOCK, D], tl.float32)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, tl.minimum(first + BLOCK, length), BLOCK):
        key = start + tl.arange(0, BLOCK)
        there = (key < length)[:, None] & (d < width)
        keys = tl.load(k + key[:, None] * width + d, mask=there, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee")
        value = tl.load(v + key[:, None] * width + d, mask=there, other=0.0)
        sums, top, total = online(scores, value, sums, top, total, scale, True, row, key)
    tl.store(out + at, (sums / total[:, None]).to(out.dtype.element_ty), mask=stored)


def kernel_function(q, k, v):
    """q [B, H, T, D], k and v [B, H / group, T, D] -> [B, H, T, D]; query i sees keys 0 … i."""
    batch, heads, length, width = q.shape
    group = heads // k.shape[1]
    scale = 1.4426950408889634 / math.sqrt(width)  # log2(e): powers of two
    out = torch.empty_like(q)
    m, n = CONFIG["BLOCK_M"], CONFIG["BLOCK_N"]
    whole = length % m == 0 and m % n == 0 and width in (16, 32, 64, 128)
    if not whole or q.dtype == torch.float32:
        padded = max(16, triton.next_power_of_2(width))
        grid = (batch * heads * triton.cdiv(length, 32),)
        any_shape[grid](q, k, v, out, length, width, heads, group, scale, D=padded, BLOCK=32, num_warps=4)
        return out
    tiles[(batch * heads * (length // m),)](
        TensorDescriptor.from_tensor(q.view(-1, width), [m, width]),
        TensorDescriptor.from_tensor(k.view(-1, width), [n, width]),
        TensorDescriptor.from_tensor(v.view(-1, width), [n, width]),
        TensorDescriptor.from_tensor(out.view(-1, width), [m, width]),
        length, heads, group, scale, D=width, **CONFIG,
    )  # fmt: skip
    return out
