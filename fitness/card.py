"""A problem's card: all that the rest of the engine may know of a problem without running its code.

Problem files are the user's own trusted Python; they run only in the judge, which hands back this card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from populations.dtypes import C_TYPES, ITEM_BYTES
from populations.graph import Graph


@dataclass(frozen=True)
class TensorSpec:
    """Name, shape and dtype (torch's name without "torch.") of one contiguous argument."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Case:
    """One shape and input distribution of a problem.

    Attributes:
        name: short name, e.g. "256x4096".
        constants: module-level constants of the problem file that this case overrides.
        distribution: how floating inputs are drawn; None: as the file's ``get_inputs`` draws them.
        held_out: never shown to operators.
        derived: made by the loader from a file that declares no cases; decides ``general`` only.
        timed: whether speed is measured on it.
        inputs, parameters, outputs: the entry's arguments in order.
        bytes: compulsory traffic: each input and parameter once, each output once.
        flops: floating-point operations, None where the problem does not say.
        init: what the constructor of a model gets, as plain JSON data.
    """

    name: str
    constants: dict[str, int]
    distribution: str | None
    held_out: bool
    derived: bool
    timed: bool
    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    bytes: int
    flops: int | None = None
    init: tuple[Any, ...] = ()

    @property
    def arguments(self) -> tuple[TensorSpec, ...]:
        """All pointers of the entry, in order."""
        return self.inputs + self.parameters + self.outputs


@dataclass(frozen=True)
class ProblemCard:
    """A problem as the rest of the engine sees it.

    Attributes:
        name: name of the suite's problem, or the file's stem.
        path: the file it was loaded from.
        sha: hash of the file's text: a run resumes only on the same problem.
        summary: first line of the file's docstring.
        tolerance: the error bound in words, e.g. "softmax over dim -1" or "sampled forward model".
        policy: "warm" or "cold": which timing counts.
        cases: given case first.
        notes: what a user should know, e.g. "precision: not policed".
        graph: the reference, traced; None where that was not possible (a note says why) or not asked for.
    """

    name: str
    path: str
    sha: str
    summary: str
    tolerance: str
    policy: str
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()
    graph: Graph | None = None

    @property
    def given(self) -> Case:
        """The case that decides; the first declared one."""
        return self.cases[0]

    def signature(self) -> str:
        """The C++ entry this problem asks for, with one pointer an argument."""
        given = self.given
        read = [f"const {C_TYPES[t.dtype]}* {t.name}" for t in given.inputs + given.parameters]
        written = [f"{C_TYPES[t.dtype]}* {t.name}" for t in given.outputs]
        arguments = ",\n    ".join([*read, *written, "const int64_t* shapes"])
        return f'extern "C" void kernel_function(\n    {arguments})'
