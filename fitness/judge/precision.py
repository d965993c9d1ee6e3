"""Running a model in a wider precision than it was written for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

NARROW = {
    torch.float64: (torch.float32, torch.float16, torch.bfloat16),
    torch.float32: (torch.float16, torch.bfloat16),
}


def widened(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """The tensors with floating-point ones in ``dtype``."""
    return [t.to(dtype) if t.is_floating_point() else t for t in tensors]


@contextmanager
def computing_in(dtype: torch.dtype) -> Iterator[None]:
    """Within it every operation that asks for, or is given, a narrower floating-point type gets ``dtype``.

    So a model that says ``x.float()`` or keeps a float32 table still computes in float64.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.no_grad(), _Widening(dtype):
            yield
    finally:
        torch.set_default_dtype(before)


class _Widening(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dtype = dtype
        self._narrow = NARROW[dtype]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        written = func._schema.is_mutable  # what is written in place must stay the very tensor it is
        wide = [self._wide(a, keep=written and i == 0) for i, a in enumerate(args)]
        return func(*wide, **{name: self._wide(a, keep=name == "out") for name, a in (kwargs or {}).items()})

    def _wide(self, value: Any, *, keep: bool) -> Any:
        if isinstance(value, torch.dtype):
            return self._dtype if value in self._narrow else value
        if keep:
            return value
        if isinstance(value, Tensor):
            return value.to(self._dtype) if value.dtype in self._narrow else value
        if isinstance(value, list | tuple):
            return type(value)(self._wide(each, keep=False) for each in value)
        return value
