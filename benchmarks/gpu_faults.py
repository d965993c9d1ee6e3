"""Hostile and unlucky kernels on a real GPU: each costs one candidate, and the judge goes on.

    python benchmarks/gpu_faults.py

A device fault, an endless kernel, kernels that do not fit, and two that skip work once a flag says that it
was done (wholly, and all but one row); between them an honest one has to be measured each time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import fitness
from fitness.verify import judge_once
from populations.kernel import Kernel
from populations.seeds import seeds
from populations.verdict import Outcome

HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, flag, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
"""
HONEST = """    values = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * n + at, powers / tl.sum(powers, 0), mask=at < n)
"""
HOST = """

def kernel_function(x):
    rows, n = x.shape
    out = torch.empty_like(x)
    flag = torch.empty(1, dtype=torch.int32, device=x.device)
    softmax[(rows,)](x, out, flag, rows, n, BLOCK=triton.next_power_of_2(n), num_warps=8)
    return out
"""
SKIPPING = """    done = tl.load(flag) == 123456789
    if not done:
"""


def indented(text: str) -> str:
    """One level deeper."""
    return "".join(f"    {line}\n" for line in text.splitlines())


CANDIDATES = {
    "writes far outside": (
        (HEAD + HONEST + "    tl.store(out + far + at, powers, mask=at < n)\n" + HOST)
        .replace("flag, rows, n, BLOCK:", "flag, rows, n, far, BLOCK:")
        .replace("flag, rows, n, BLOCK=", "flag, rows, n, 1 << 42, BLOCK="),
        {Outcome.CRASHED},
    ),
    "never ends": (
        HEAD + HONEST + "    while tl.load(flag, volatile=True) != 7:\n        tl.store(flag, 8)\n" + HOST,
        {Outcome.TIMED_OUT},
    ),
    "needs too much shared memory": (
        HEAD
        + "    wide = tl.arange(0, 256)\n"
        + "    tile = tl.load(x + wide[:, None] * 0 + wide[None, :] * 0).to(tl.float16)\n"
        + "    total = tl.sum(tl.dot(tile, tile), 1)\n"
        + HONEST
        + "    tl.store(out + wide, total, mask=wide < 0)\n"
        + HOST,
        {Outcome.UNCOMPILABLE, Outcome.CRASHED},
    ),
    "allocates 100 GB": (
        HEAD + HONEST + HOST.replace("torch.empty(1,", "torch.empty(25_000_000_000,"),
        {Outcome.REJECTED},
    ),
    "skips all once its flag is set": (
        HEAD + SKIPPING + indented(HONEST) + "        tl.store(flag, 123456789)\n" + HOST,
        {Outcome.INCORRECT},
    ),
    "skips all rows but one once its flag is set": (
        HEAD
        + SKIPPING.replace("if not done", "if (not done) | (row == 0)")
        + indented(HONEST)
        + "        tl.store(flag, 123456789)\n"
        + HOST,
        {Outcome.INCORRECT},
    ),
}


def main() -> int:
    """Judge each, with an honest kernel after it; 1 where anything came out otherwise."""
    wrong = 0
    honest = Kernel(seeds("softmax", "triton")[0].source, "triton")
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(fitness.open_target("cuda", "softmax", folder=Path(folder), language="triton")) as target,
    ):
        for name, (source, allowed) in CANDIDATES.items():
            for what, kernel, good in (
                (name, Kernel(source, "triton"), allowed),
                ("then an honest one", honest, {Outcome.MEASURED}),
            ):
                start = time.monotonic()
                verdict = judge_once(target, kernel)
                wrong += verdict.status not in good
                mark = "ok   " if verdict.status in good else "WRONG"
                took = f"{time.monotonic() - start:.1f} s"
                print(f"{mark} {what}: {verdict.status}: {verdict.reason[:150]} ({took})", flush=True)
    print("all as expected" if not wrong else f"{wrong} otherwise")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
