"""Hand-written launch plans for tests of the interpreter: a cut module, its launches, what they run on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fitness import plan
from fitness.card import TensorSpec
from fitness.interpreter.client import Interpreter
from fitness.judge.buffers import ArgumentSets
from fitness.judge.interpreted import Interpreted

HEAD = "import triton\nimport triton.language as tl\n"
NAMES = {
    torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64",
    torch.int32: "i32", torch.int64: "i64", torch.bool: "i1", torch.int8: "i8", torch.uint8: "u8",
}  # fmt: skip


def view(storage: int, like: Tensor, offset: int = 0) -> dict[str, Any]:
    """A contiguous view of a storage, shaped as a tensor."""
    return {
        "storage": storage,
        "offset": offset,
        "shape": list(like.shape),
        "strides": list(like.stride()),
        "dtype": dtype_name(like),
    }


def dtype_name(tensor: Tensor) -> str:
    """Torch's name without "torch."."""
    return str(tensor.dtype).removeprefix("torch.")


def kernel(function: str, options: dict[str, Any] | None = None, **parameters: Any) -> dict[str, Any]:
    """A specialisation: tensors are pointers, ("fp32", …) a number's type, others constants."""
    signature, constants = {}, []
    for index, (name, given) in enumerate(parameters.items()):
        if isinstance(given, Tensor):
            signature[name] = "*" + NAMES[given.dtype]
        elif isinstance(given, tuple):
            signature[name] = given[0]
        else:
            signature[name] = "constexpr"
            constants.append([[index], given])
    return {
        "function": function,
        "parameters": list(parameters),
        "signature": signature,
        "constants": constants,
        "attributes": [],
        "options": {"num_warps": 4, **(options or {})},
    }


def launch(index: int, grid: Sequence[int], *arguments: Any) -> dict[str, Any]:
    """A launch: dictionaries are views or whole arguments, the rest numbers."""
    given = []
    for each in arguments:
        if isinstance(each, dict):
            given.append(each if "kind" in each else {"kind": "pointer", "view": each})
        else:
            given.append({"kind": "scalar", "value": each})
    return {"do": "launch", "kernel": index, "grid": [*grid, 1, 1][:3], "arguments": given}


class Written:
    """A plan of one case in a folder, with tensors to run it on.

    Args:
        folder: for the plan and its module.
        source: device functions.
        inputs: what the case is run on.
        outputs: shapes and dtypes of what it makes; the plan's storages follow the inputs'.
        kernels, steps: as ``kernel`` and ``launch`` make them.
        scratch: further storages, in bytes.
        views: of the outputs, where they are not whole storages.
    """

    def __init__(
        self,
        folder: Path,
        source: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        kernels: list[dict[str, Any]],
        steps: list[dict[str, Any]],
        scratch: Sequence[int] = (),
        views: list[dict[str, Any]] | None = None,
    ) -> None:
        self.inputs = list(inputs)
        self.arguments = [
            TensorSpec(f"a{i}", tuple(t.shape), dtype_name(t)) for i, t in enumerate([*inputs, *outputs])
        ]
        (folder / "module.py").write_text(HEAD + textwrap.dedent(source))
        made = [view(len(inputs) + i, tensor) for i, tensor in enumerate(outputs)]
        binary = {"name": "k", "sha": "0", "files": {}, "metadata": {}, "traits": {}}
        case = {
            "case": "given",
            "arguments": len(inputs),
            "storages": [t.nbytes for t in (*inputs, *outputs)] + list(scratch),
            "steps": steps,
            "outputs": views or made,
        }
        written = plan.LaunchPlan(
            arch="sm_90",
            module="module.py",
            kernels=kernels,  # type: ignore[arg-type]  # checked and made by the schema
            binaries=[binary] * len(kernels),  # type: ignore[arg-type]
            cases=[case],  # type: ignore[arg-type]
            choices={},
        )
        self.path = folder / "plan.json"
        self.path.write_bytes(plan.write(written))

    @contextmanager
    def running(self, interpreter: Interpreter, sets: int = 1) -> Iterator[tuple[ArgumentSets, Interpreted]]:
        """Argument sets filled with the inputs, and a launcher over them."""
        with ArgumentSets(self.arguments, len(self.inputs), sets) as filled:
            for index in range(sets):
                for buffer, tensor in zip(filled.inputs(index), self.inputs, strict=True):
                    buffer.copy_(tensor)
            with Interpreted(self.path, "given", filled, interpreter, sandboxed=True) as launcher:
                yield filled, launcher

    def outputs(self, interpreter: Interpreter) -> list[Tensor]:
        """What one run makes; the redzones are intact."""
        with self.running(interpreter) as (sets, launcher):
            launcher.block(0, 1, 5.0)
            assert sets.redzone_damage(0) is None
            return [tensor.clone() for tensor in sets.outputs(0)]
