"""An implementation in which every single operation rounds its result to bfloat16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, bfloat16
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from benchmarks.gate.operation import Implementation


class _Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return tree_map(_rounded, func(*args, **(kwargs or {})))


def _rounded(value: Any) -> Any:
    return (
        value.to(bfloat16).to(value.dtype)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
    )


def bfloat16_steps(f: Implementation) -> Implementation:
    """``f`` as bfloat16 arithmetic would compute it: float32 within an operation, rounded after each."""

    def compute(*arguments: Tensor) -> Any:
        with _Rounding():
            return f(*arguments)

    return compute
