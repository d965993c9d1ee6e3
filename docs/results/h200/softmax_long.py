"""Softmax over very long rows: a row lies in the registers of several programs, read once and written once.

Written for kernel-evo from the definition. A row is cut into parts of TILE elements, one program each. All
programs are resident at once (a cooperative launch), in groups of as many as a row has parts; the groups
take turns at the rows. A program reads its part, publishes maximum and sum of exponentials as one 64-bit
word, which can't be torn and is never zero, and waits until the words of the whole row are there: they
start as zeros, each is written once. Then the part is scaled and stored. With several programs on a
multiprocessor some load while others wait; the compiler is held to the registers that this takes. STREAM
says whether what passes through should leave the caches first. Accumulation in float32.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
SMS = 132  # multiprocessors of an H100 or H200
REGISTERS = 65536  # of each
CONFIG = {
    "TILE": 16384,
    "PROGRAMS": 264,
    "STREAM": 0,
    "num_warps": 8,
}
SPACE = {
    "TILE": [4096, 8192, 16384, 32768],
    "PROGRAMS": [132, 264, 396, 528, 660, 792, 1056],
    "STREAM": [0, 1],
    "num_warps": [4, 8, 16, 32],
}


@triton.jit
def packed(largest, total):
    high = largest.to(tl.int32, bitcast=True).to(tl.int64) << 32
    return high | total.to(tl.uint32, bitcast=True).to(tl.int64)


@triton.jit
def softmax_parts(
    x, out, words, rows, n, groups,
    PARTS: tl.constexpr, PADDED: tl.constexpr, TILE: tl.constexpr, STREAM: tl.constexpr,
):  # fmt: skip
    FIRST: tl.constexpr = "evict_first" if STREAM else ""
    part = tl.program_id(0) % PARTS
    peer = tl.arange(0, PADDED)
    lane = tl.arange(0, TILE)
    inside = lane < n - part * TILE
    for row in range(tl.program_id(0) // PARTS, rows, groups):
        at = tl.cast(row, tl.int64) * n + part * TILE
        value = tl.load(x + at + lane, mask=inside, other=float("-inf"), eviction_policy="evict_last")
        value = value.to(tl.float32)
        largest = tl.max(value, axis=0)
        base = tl.where(largest == float("-inf"), 0.0, largest)  # nothing but -inf in this part
        value = tl.exp2((value - base) * LOG2_E)
        total = tl.sum(value, axis=0)
        top = largest
        if PARTS > 1:
            board = words + row * PARTS
            tl.atomic_xchg(board + part, packed(largest, total), sem="relaxed")
            word = tl.load(board + peer, mask=peer < PARTS, other=-1, volatile=True)
            while tl.min((word != 0).to(tl.int32), axis=0) == 0:
                word = tl.load(board + peer, mask=peer < PARTS, other=-1, volatile=True)
            high = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
            low = word.to(tl.int32).to(tl.float32, bitcast=True)
            high = tl.where(peer < PARTS, high, float("-inf"))
            low = tl.where(peer < PARTS, low, 0.0)
            top = tl.max(high, axis=0)
            total = tl.sum(low * tl.exp2((high - top) * LOG2_E), axis=0)
        value = value * (tl.exp2((largest - top) * LOG2_E) / total)
        tl.store(out + at + lane, value, mask=inside, eviction_policy=FIRST)


def kernel_function(x):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    tile = min(CONFIG["TILE"], triton.next_power_of_2(n))
    parts = triton.cdiv(n, tile)
    if parts > CONFIG["PROGRAMS"]:
        raise ValueError(f"a row of {n} elements is longer than {CONFIG['PROGRAMS']} parts of {tile}")
    groups = min(rows, CONFIG["PROGRAMS"] // parts)
    threads = CONFIG["PROGRAMS"] // SMS * 32 * CONFIG["num_warps"]
    words = torch.zeros((rows, parts), dtype=torch.int64, device=x.device)
    softmax_parts[(groups * parts,)](
        x, out, words, rows, n, groups,
        PARTS=parts, PADDED=triton.next_power_of_2(parts), TILE=tile, STREAM=CONFIG["STREAM"],
        num_warps=CONFIG["num_warps"], maxnreg=min(255, REGISTERS // threads // 8 * 8),
        launch_cooperative_grid=True,
    )  # fmt: skip
    return out
