"""The arguments of a kernel's entry under one set of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from fitness.card import TensorSpec


@dataclass(frozen=True)
class Signature:
    """Specs of the entry's arguments, and the numbers that the model or forward() is given."""

    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    numbers: tuple[int | float | str, ...] = ()

    @property
    def arguments(self) -> tuple[TensorSpec, ...]:
        """All of them, in order."""
        return self.inputs + self.parameters + self.outputs

    @property
    def nbytes(self) -> int:
        """Bytes of one argument set."""
        return sum(spec.nbytes for spec in self.arguments)

    def fits(self, other: Signature) -> bool:
        """Whether one kernel can serve both: they differ in extents alone."""
        return self._kinds() == other._kinds()

    def _kinds(self) -> list[tuple[str, str, int]]:
        return [(spec.name, spec.dtype, len(spec.shape)) for spec in self.arguments]


def specs(names: Sequence[str], tensors: Sequence[Tensor]) -> tuple[TensorSpec, ...]:
    """Names, shapes and dtypes of tensors."""
    return tuple(
        TensorSpec(name, tuple(int(extent) for extent in tensor.shape), dtype_name(tensor))
        for name, tensor in zip(names, tensors, strict=True)
    )


def dtype_name(tensor: Tensor) -> str:
    """The dtype as cards have it, e.g. "float32"."""
    return str(tensor.dtype).removeprefix("torch.")
