"""Whether timed outputs hold, in one pass over memory: bound and comparison fused by PyTorch's compiler.

The comparison of ``fitness.judge.compare`` makes a dozen passes, and a GPU spends more time on them than on
the kernel that they check. The fused one may only say that all is well; what it doubts is looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fitness.judge.bounds import bounds
from fitness.judge.loaded import NARROW, LoadedCase

# Of a kernel's outputs, the reference's float32 ones, inputs and parameters: the worst error over its bound.
Worst = Callable[[list[Tensor], list[Tensor], list[Tensor], list[Tensor]], Tensor]
TINY = 2.0**-149
MOST_STEPS = 100


def worst_error(loaded: LoadedCase, scale: float) -> Worst | None:
    """The largest error in units of ``scale`` bounds, NaN where there is any; None where it cannot be fused.

    A bound that a problem file computes in very many steps would take the compiler minutes.

    Args:
        loaded: the case.
        scale: how many bounds are allowed.
    """
    tolerance, specs = loaded.tolerance, loaded.case.outputs
    if tolerance is None or any(spec.dtype not in ("float32", "bfloat16", "float16") for spec in specs):
        return None

    def worst(got: list[Tensor], want: list[Tensor], inputs: list[Tensor], held: list[Tensor]) -> Tensor:
        found = []
        for g, w, bound in zip(got, want, bounds(tolerance, inputs, held, want, specs), strict=True):
            allowed = (bound.elementwise * scale).clamp_min(TINY)
            found.append(((g.to(w.dtype) - w).abs() / allowed).max())
        return torch.stack(found).max()

    compiled: Worst = torch.compile(worst, dynamic=False)
    return compiled if _agrees(loaded, worst, compiled) else None


def _agrees(loaded: LoadedCase, plain: Worst, compiled: Worst) -> bool:
    """Whether the compiler takes it, and gives the same number as the same lines not compiled."""
    draw = loaded.draw("quick", checking=False)
    outputs = loaded.framework(draw.inputs, draw.parameters)
    for _, part, got in loaded.pieces(draw, outputs):
        want = loaded.nearly(part.inputs, part.parameters)
        arguments = (got, *(widened_narrow(ts) for ts in (want, part.inputs, part.parameters)))
        with _Count() as steps:
            expected = float(plain(*arguments))
        if steps.count > MOST_STEPS:
            return False
        try:
            found = float(compiled(*arguments))
        except (RuntimeError, torch._dynamo.exc.TorchDynamoException):
            return False
        if not math.isclose(found, expected, rel_tol=0.01, abs_tol=0.01):
            return False
    return True


class _Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def widened_narrow(tensors: list[Tensor]) -> list[Tensor]:
    """bfloat16 and float16 as float32, everything else as it is."""
    return [tensor.float() if tensor.dtype in NARROW else tensor for tensor in tensors]
