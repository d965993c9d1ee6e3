"""Whether timed outputs hold, in a pass or two over memory: reference, bound and comparison fused.

The steps of ``fitness.judge.checker`` make two dozen passes, and a GPU spends more time on them than on the
kernel that they check. PyTorch's compiler fuses what one run of those very steps was seen to do. The fused
check may only say that all is well; what it doubts is looked at again, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from fitness.judge.bounds import bounds
from fitness.judge.compare import errors
from fitness.judge.loaded import NARROW, Draw, LoadedCase
from fitness.target import ProblemError

MOST_STEPS = 150  # more would take the compiler minutes
A_LITTLE = 2.0**-5

Worst = Callable[..., Tensor]  # of outputs, inputs and parameters in one row: the worst error over its bound


class Quick:
    """The fused check of one case.

    Args:
        worst: by the shapes of the tensors that it is for: a case is looked at in pieces.
    """

    def __init__(self, worst: dict[tuple[torch.Size, ...], Worst]) -> None:
        self._worst = worst

    def errors(self, looks: Sequence[tuple[Draw, Sequence[Tensor]]]) -> list[float]:
        """Of each draw and its outputs the worst error in units of what is allowed.

        Infinite or NaN where that cannot be told so. The device is waited for once.
        """
        found = []
        for draw, outputs in looks:
            tensors = (*outputs, *draw.inputs, *draw.parameters)
            worst = self._worst.get(_shapes(tensors), _untold)
            found.append(worst(*tensors))
        return torch.stack(found).tolist() if found else []


def quick(loaded: LoadedCase, scale: float) -> Quick | None:
    """The fused check; None where the compiler does not take it, or it gives another number.

    Args:
        loaded: the case.
        scale: how many bounds are allowed around the framework's float32 result.
    """
    specs = loaded.case.outputs
    if loaded.tolerance is None or any(spec.dtype not in _FLOATS for spec in specs):
        return None
    draw = loaded.draw("quick", checking=False)
    fused: dict[tuple[torch.Size, ...], Worst] = {}
    for _, part, outputs in loaded.pieces(draw, loaded.framework(draw.inputs, draw.parameters)):
        tensors = (*outputs, *part.inputs, *part.parameters)
        if _shapes(tensors) not in fused:
            steps = _steps(loaded, len(outputs), len(part.inputs), scale)
            worst = _fused(steps, tensors, len(outputs))
            if worst is None:
                return None
            fused[_shapes(tensors)] = worst
    return Quick(fused)


_FLOATS = ("float32", "bfloat16", "float16")


def _steps(loaded: LoadedCase, outputs: int, inputs: int, scale: float) -> Worst:
    """What the checker does, as a function of one row of tensors."""

    def worst(*tensors: Tensor) -> Tensor:
        got, read, held = tensors[:outputs], [*tensors[outputs:][:inputs]], [*tensors[outputs + inputs :]]
        want = widened_narrow(loaded.nearly(read, held))
        read, held = widened_narrow(read), widened_narrow(held)
        found = []
        for g, w, bound in zip(
            got, want, bounds(loaded.tolerance, read, held, want, loaded.case.outputs), strict=True
        ):
            _, ratio = errors(g.to(w.dtype), w, bound.elementwise * scale)
            found.append(ratio.max())
        return torch.stack(found).max()

    return worst


def _fused(steps: Worst, tensors: Sequence[Tensor], outputs: int) -> Worst | None:
    """The steps compiled, if they take few operations and the compiled ones judge alike.

    Right outputs must pass; and where all are a little wrong, the worst of them must be found as wrong.
    """
    wrong = [tensor * (1 + A_LITTLE) for tensor in tensors[:outputs]]
    try:
        expected = float(steps(*wrong, *tensors[outputs:]))
        graph: fx.GraphModule = make_fx(steps)(*tensors)
        if len(graph.graph.nodes) > MOST_STEPS:
            return None
        compiled: Worst = torch.compile(graph, dynamic=False, fullgraph=True)
        right, found = float(compiled(*tensors)), float(compiled(*wrong, *tensors[outputs:]))
    except (RuntimeError, NotImplementedError, ProblemError, torch._dynamo.exc.TorchDynamoException):
        return None
    return compiled if right <= 1.0 and math.isclose(found, expected, rel_tol=0.02) else None


def _untold(*tensors: Tensor) -> Tensor:
    return torch.full((), math.inf, device=tensors[0].device)


def _shapes(tensors: Sequence[Tensor]) -> tuple[torch.Size, ...]:
    return tuple(tensor.shape for tensor in tensors)


def widened_narrow(tensors: Sequence[Tensor]) -> list[Tensor]:
    """bfloat16 and float16 as float32, everything else as it is."""
    return [tensor.float() if tensor.dtype in NARROW else tensor for tensor in tensors]
