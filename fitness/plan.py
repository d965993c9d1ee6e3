"""A launch plan: everything a device must do for one kernel source on one case, without the source.

Lowering writes it, the judge and the interpreter run it. A plan names *storages* (blocks of memory), *steps*
in order, and the *views* of storages that are the outputs::

    storages  0 … n-1   the entry's inputs and parameters, in the card's order
              n …       scratch that the host function allocated; poisoned before each run
    steps     launch a kernel, fill, copy (with a cast), write a constant, count up
    outputs   one view per output of the case

What no step writes stays poisoned, so whatever a candidate's host code did beside this is without effect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as checked

STRICT = ConfigDict(extra="forbid", strict=False, ser_json_inf_nan="constants")
SCRATCH_BYTES = 256 << 20  # of one plan
LAUNCHES = 64  # of one plan
CONSTANT_ELEMENTS = 4096  # of one host constant


@checked(frozen=True, config=STRICT)
class View:
    """A strided tensor in a storage.

    Attributes:
        storage: index of the storage.
        offset: of the first element, in elements of ``dtype``.
        shape, strides: in elements.
        dtype: torch's name without "torch.".
    """

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


@checked(frozen=True, config=STRICT)
class Pointer:
    """A tensor passed to a kernel."""

    kind: Literal["pointer"]
    view: View


@checked(frozen=True, config=STRICT)
class Descriptor:
    """A host-side tensor descriptor (TMA) passed to a kernel."""

    kind: Literal["descriptor"]
    view: View
    block: tuple[int, ...]
    padding: str = "zero"


@checked(frozen=True, config=STRICT)
class Scalar:
    """A number passed to a kernel; None for an argument that is None."""

    kind: Literal["scalar"]
    value: bool | int | float | None


Argument = Annotated[Pointer | Descriptor | Scalar, Field(discriminator="kind")]


@checked(frozen=True, config=STRICT)
class Launch:
    """Launch ``kernels[kernel]`` over a grid; arguments in the order of the kernel's parameters.

    Parameters that are compile-time constants are in the list too (as Triton's launcher wants them).
    """

    do: Literal["launch"]
    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[Argument, ...]


@checked(frozen=True, config=STRICT)
class Fill:
    """Write one value everywhere in a view."""

    do: Literal["fill"]
    into: View
    value: bool | int | float


@checked(frozen=True, config=STRICT)
class Copy:
    """Copy a view into another of the same shape, converting the dtype."""

    do: Literal["copy"]
    into: View
    source: View


@checked(frozen=True, config=STRICT)
class Constant:
    """Write numbers that the host code held, in row-major order."""

    do: Literal["constant"]
    into: View
    values: tuple[bool | int | float, ...]


@checked(frozen=True, config=STRICT)
class Count:
    """Write start, start + step, … ."""

    do: Literal["count"]
    into: View
    start: int | float
    step: int | float


Step = Annotated[Launch | Fill | Copy | Constant | Count, Field(discriminator="do")]


@checked(frozen=True, config=STRICT)
class KernelSpec:
    """One specialisation of one jit function: what the compiler is told.

    Attributes:
        function: name in the cut module.
        parameters: names of the function's parameters, in order.
        signature: type of each parameter as Triton writes it ("*fp32", "i32", "constexpr", …).
        constants: (path, value): the path is (parameter index, …), the value a number, text, None, a list,
            {"dtype": "fp32"} or {"function": name}.
        attributes: (path, [[key, value], …]): e.g. [["tt.divisibility", 16]].
        options: num_warps, num_stages, num_ctas, launch_cooperative_grid, … as the launch gave them.
    """

    function: str
    parameters: tuple[str, ...]
    signature: dict[str, Any]
    constants: tuple[tuple[tuple[int, ...], Any], ...]
    attributes: tuple[tuple[tuple[int, ...], Any], ...]
    options: dict[str, Any]


@checked(frozen=True, config=STRICT)
class Binary:
    """A compiled kernel: files in the artifact's folder, and what a launcher must know.

    Attributes:
        name: of the device function.
        sha: of the device binary.
        files: extension (cubin, json, …) → file name in the folder.
        metadata: Triton's own metadata (shared, num_warps, target, …), plain JSON.
        traits: static facts: registers, spills, shared memory, instruction counts.
    """

    name: str
    sha: str
    files: dict[str, str]
    metadata: dict[str, Any]
    traits: dict[str, int]


@checked(frozen=True, config=STRICT)
class CasePlan:
    """What happens on one case. ``storages``: bytes of each; ``arguments``: how many of them are inputs."""

    case: str
    arguments: int
    storages: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[View, ...]


@checked(frozen=True, config=STRICT)
class LaunchPlan:
    """All lowered cases of one kernel source for one architecture.

    Attributes:
        arch: "sm_90", "gfx942", ….
        module: file name of the cut module (device functions alone), for the interpreter.
        kernels: the specialisations that launches name; ``binaries[i]`` is ``kernels[i]`` compiled.
        cases: by the order of lowering.
        choices: which configuration each autotuned function was lowered with, by function name.
    """

    arch: str
    module: str
    kernels: tuple[KernelSpec, ...]
    binaries: tuple[Binary, ...]
    cases: tuple[CasePlan, ...]
    choices: dict[str, dict[str, Any]]

    def case(self, name: str) -> CasePlan:
        """The plan of a case.

        Raises:
            KeyError: it was not lowered.
        """
        for plan in self.cases:
            if plan.case == name:
                return plan
        raise KeyError(name)

    @property
    def sha(self) -> str:
        """Equal for equal work: binaries, grids, argument binding, buffer layout and fills."""
        text = f"{self.arch}|{[b.sha for b in self.binaries]}|{self.cases}"
        return hashlib.sha256(text.encode()).hexdigest()


def work(arch: str, cases: Sequence[CasePlan], binaries: Mapping[int, str]) -> str:
    """Equal for equal work on some cases, whatever else a plan does.

    Args:
        arch: what was lowered for.
        cases: the cases.
        binaries: hash of the binary of each kernel that they launch, by its number.
    """
    done = []
    for case in cases:
        launched = [step for step in case.steps if isinstance(step, Launch)]
        steps = [replace(step, kernel=0) if isinstance(step, Launch) else step for step in case.steps]
        done.append((replace(case, steps=tuple(steps)), [binaries[step.kernel] for step in launched]))
    return hashlib.sha256(f"{arch}|{done}".encode()).hexdigest()


def read(data: bytes | str) -> LaunchPlan:
    """The plan in a JSON text.

    Raises:
        pydantic.ValidationError: it is not one.
    """
    return _adapter().validate_json(data)


def write(plan: LaunchPlan) -> bytes:
    """The plan as JSON."""
    return _adapter().dump_json(plan)


@cache
def _adapter() -> TypeAdapter[LaunchPlan]:
    return TypeAdapter(LaunchPlan)
