"""What one call of a host function did to memory and the device, as data of a launch plan.

Tensors of the device are meta tensors while a call is traced: shapes, strides and storages without memory;
where an exported file runs for real they are the device's own. A tape knows the storages that exist in its
call and writes every step that touches them. Runs in children only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from fitness.lowering.limits import ITEM_BYTES, STEPS
from fitness.lowering.refusal import Refused
from fitness.plan import CONSTANT_ELEMENTS, LAUNCHES

SPACING = 1 << 40  # bytes between the pretended addresses of two storages

Json = dict[str, Any]


@dataclass
class Tape:
    """The record of one call.

    Attributes:
        arguments: how many storages are inputs and parameters.
        salt: shifts the pretended addresses, so that two calls meet different ones.
        device: torch's type of the device where the entry's tensors lie.
    """

    arguments: int = 0
    salt: int = 1
    device: str = "meta"
    steps: list[Json] = field(default_factory=list)
    storages: list[torch.UntypedStorage] = field(default_factory=list)
    _index: dict[int, int] = field(default_factory=dict)

    def adopt(self, tensor: torch.Tensor) -> None:
        """Count the storage of a fresh tensor among ours."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._index:
            self._index[storage._cdata] = len(self.storages)
            self.storages.append(storage)  # kept alive: its identity must not be given to another

    def storage(self, tensor: torch.Tensor) -> int:
        """Index of a tensor's storage.

        Raises:
            Refused: the tensor was made outside this call.
        """
        index = self._index.get(tensor.untyped_storage()._cdata)
        if index is None:
            raise Refused(
                "uses a tensor that was made outside this call (at module level, in __init__ or earlier); "
                "only the arguments and what the call itself allocates exist when the plan is run"
            )
        return index

    def address(self, tensor: torch.Tensor) -> int:
        """The pretended address: storages are far apart and aligned."""
        start = (self.storage(tensor) + 1) * SPACING + self.salt * 4096
        return start + int(tensor.storage_offset()) * tensor.element_size()

    def view(self, tensor: torch.Tensor) -> Json:
        """A tensor as plan data."""
        if tensor.device.type != self.device:
            raise Refused(
                "a CPU tensor is used where one of the device is needed; make it with device=x.device"
            )
        if tensor.is_neg() or tensor.is_conj() or tensor.layout != torch.strided:
            raise Refused("only plain strided tensors can be part of a plan")
        return {
            "storage": self.storage(tensor),
            "offset": tensor.storage_offset(),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "dtype": dtype_name(tensor.dtype),
        }

    def fill(self, into: torch.Tensor, value: Any) -> None:
        """Record one value written everywhere."""
        if isinstance(value, torch.Tensor):
            if value.device.type == self.device:
                raise Refused(
                    "fills a tensor with a number that lies on the device; launch a kernel for that"
                )
            value = value.item()
        self._add({"do": "fill", "into": self._written(into), "value": value})

    def copy(self, into: torch.Tensor, source: torch.Tensor) -> None:
        """Record a copy (with broadcast and cast) from the device or, as constants, from the host."""
        if source.device.type != self.device:
            self.constant(into, source.expand(into.shape))
            return
        view = self.view(source.expand(into.shape))
        self._add({"do": "copy", "into": self._written(into), "source": view})

    def constant(self, into: torch.Tensor, values: torch.Tensor) -> None:
        """Record numbers of the host written to the device."""
        if into.numel() > CONSTANT_ELEMENTS:
            raise Refused(
                f"copies {into.numel()} numbers from the host; a plan holds at most {CONSTANT_ELEMENTS}"
            )
        self._add({"do": "constant", "into": self._written(into), "values": values.flatten().tolist()})

    def count(self, into: torch.Tensor, start: Any, step: Any) -> None:
        """Record start, start + step, …"""
        self._add({"do": "count", "into": self._written(into), "start": start, "step": step})

    def launch(self, step: Json) -> None:
        """Record a kernel launch."""
        if sum(step["do"] == "launch" for step in self.steps) == LAUNCHES:
            raise Refused(f"launches more than {LAUNCHES} kernels in one call")
        self._add(step)

    def _written(self, into: torch.Tensor) -> Json:
        view = self.view(into)
        if view["storage"] < self.arguments:
            raise Refused("writes into an input; inputs must stay as they are")
        return view

    def _add(self, step: Json) -> None:
        if len(self.steps) == STEPS:
            raise Refused(f"does more than {STEPS} fills, copies and launches in one call")
        self.steps.append(step)


def dtype_name(dtype: torch.dtype) -> str:
    """Torch's name without "torch."."""
    name = str(dtype).removeprefix("torch.")
    if name not in ITEM_BYTES:
        raise Refused(f"tensors of type {name} cannot be part of a plan")
    return name
