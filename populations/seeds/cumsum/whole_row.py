"""Running sum along each row: a whole row in the registers of one program, one scan.

Written for kernel-evo from the definition. Threads wait for each other once a row. Rows beyond LONGEST are
scanned in pieces with a carry, short ones several at a time. Accumulation in float32.
"""

import torch
import triton
import triton.language as tl

CONFIG = {
    "TILE": 4096,
    "LONGEST": 32768,
    "num_warps": 16,
}
SPACE = {
    "TILE": [1024, 2048, 4096, 8192],
    "LONGEST": [8192, 16384, 32768],
    "num_warps": [4, 8, 16, 32],
}


@triton.jit
def scan_rows(x, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    x += first.to(tl.int64) * n
    out += first.to(tl.int64) * n
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (column < n) & (row < rows - first)
    at = row * n + column
    value = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    tl.store(out + at, tl.cumsum(value, axis=1), mask=inside, cache_modifier=".cs")


@triton.jit
def scan_long_rows(x, out, n, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    out += tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, n, BLOCK):
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside, other=0.0, eviction_policy="evict_first")
        value = value.to(tl.float32)
        tl.store(out + start + lane, tl.cumsum(value, axis=0) + carry, mask=inside, cache_modifier=".cs")
        carry += tl.sum(value, axis=0)


def kernel_function(x):
    n = x.shape[-1]
    rows = x.numel() // n
    out = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    warps = CONFIG["num_warps"]
    if block > CONFIG["LONGEST"]:
        scan_long_rows[(rows,)](x, out, n, BLOCK=CONFIG["LONGEST"], num_warps=warps)
        return out
    group = max(1, CONFIG["TILE"] // block)
    scan_rows[(triton.cdiv(rows, group),)](x, out, rows, n, ROWS=group, BLOCK=block, num_warps=warps)
    return out
