"""In the child, before the file is met: does PyTorch reach the GPU in the sandbox, and does Triton run there?

What fails here is the machine's fault, so no kernel is blamed for it.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import ctypes
import os
import traceback
from pathlib import Path

import torch
import triton
import triton.language as tl

from fitness.lowering.refusal import one_line


@triton.jit
def _count(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, at)


def failure() -> str | None:
    """Why files cannot be run here; None: they can."""
    if not torch.cuda.is_available():
        return f"the sandbox does not reach the GPU: {_what_is_missing()}"
    try:
        made = torch.empty(16, dtype=torch.int32, device="cuda")
        _count[(1,)](made, BLOCK=16)
        right = made.tolist() == list(range(16))
    except Exception as why:
        traceback.print_exc()  # into the log
        return f"Triton does not run in the sandbox: {one_line(why)}"
    return None if right else "the GPU gives wrong answers in the sandbox"


def _what_is_missing() -> str:
    """Why PyTorch finds no GPU: what the driver says, and files that it cannot open."""
    said = []
    try:
        said.append(f"cuInit gives {ctypes.CDLL('libcuda.so.1').cuInit(0)}")
    except (OSError, AttributeError) as why:
        said.append(one_line(why))
    files = [*Path("/dev").glob("nvidia*"), Path("/proc/self/maps"), Path("/proc/driver/nvidia/params")]
    for file in [path for path in files if not path.is_dir()]:
        try:
            os.close(os.open(file, os.O_RDWR if file.parent == Path("/dev") else os.O_RDONLY))
        except OSError as why:
            said.append(f"{file}: {why.strerror}")
    return "; ".join(said)
