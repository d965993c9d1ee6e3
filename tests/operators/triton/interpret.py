"""Runs kernel files under Triton's interpreter and prints what they return, for the tests of the operators.

Reads lines of JSON, {"name", "file", "subject"}, from standard input; writes one line for each: {"name",
"error"}, the largest error against the reference relative to its largest value, or {"name", "failed"}.
"""

import json
import os
import sys
import types

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.operators.triton.subjects import INPUTS, REFERENCES, load


@triton.jit
def tanh(x):
    """The interpreter has no libdevice."""
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0


libdevice.tanh = tanh


def error(module: types.ModuleType, subject: str) -> float:
    worst = 0.0
    for inputs in INPUTS[subject]():
        got = module.kernel_function(*(x.clone() for x in inputs))
        wanted = REFERENCES[subject](*(x.double() for x in inputs))
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for one, other in pairs:
            assert one.shape == other.shape, (one.shape, other.shape)
            worst = max(worst, float((one.double() - other).abs().max() / other.abs().max()))
            worst = worst if bool(torch.isfinite(one).all()) else float("inf")
    return worst


for line in sys.stdin:
    task = json.loads(line)
    try:
        answer = {"name": task["name"], "error": error(load(task["file"]), task["subject"])}
    except Exception as failure:  # reported to the test, which fails with it
        answer = {"name": task["name"], "failed": f"{type(failure).__name__}: {failure}"[:2000]}
    print(json.dumps(answer), flush=True)
