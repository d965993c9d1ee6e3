"""A case that can run: drawing its data, its float64 reference, and the framework's own model as baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from fitness.card import Case
from fitness.judge.arguments import flat_tensors
from fitness.judge.inputs import generator, perturbed, redrawn
from fitness.judge.place import in_place, place
from fitness.judge.program import Program
from fitness.judge.refill import Refill
from fitness.judge.structure import Kind, kind_of
from fitness.judge.usercode import seed_of
from fitness.target import ProblemError

NARROW = (torch.bfloat16, torch.float16)
PIECE_BYTES = 2 << 30  # of an argument set that is looked at in one go: float64 copies take a multiple of it


@dataclass(frozen=True, eq=False)
class Draw:
    """One set of data for the entry's read-only arguments. Equality is identity, so results can be cached."""

    inputs: list[Tensor]
    parameters: list[Tensor]


class LoadedCase:
    """One case of a problem, with the code to run it.

    Args:
        program: the problem file with this case's constants.
        case: its card.
        precision: what the reference computes in; None: as the model was written.
        steady: whether inputs that never change between draws stay as they are, also in checks.
    """

    def __init__(
        self,
        program: Program,
        case: Case,
        precision: torch.dtype | None = torch.float64,
        *,
        steady: bool = False,
    ) -> None:
        self.case = case
        self.precision = precision
        self.steady = steady
        self._program = program
        self._memory: tuple[object, object, list[Tensor]] | None = None  # None: nothing remembered yet
        self._remembers = False

    @property
    def program(self) -> Program:
        """The executed problem file."""
        return self._program

    @property
    def tolerance(self) -> Any:
        """``TOLERANCE`` as the file declares it under this case's constants, or None."""
        return getattr(self._program.module, "TOLERANCE", None)

    def but(self, **changes: Any) -> LoadedCase:
        """The same program with fields of its case changed."""
        return LoadedCase(self._program, replace(self.case, **changes), self.precision, steady=self.steady)

    def examined(self, precision: torch.dtype | None, *, steady: bool) -> LoadedCase:
        """The same case, once it is known what its reference bears."""
        return LoadedCase(self._program, self.case, precision, steady=steady)

    # -- data ----------------------------------------------------------------------------------------

    @cached_property
    def kinds(self) -> list[Kind]:
        """What kind of data each input holds in the file's own draws."""
        first, second = (self._program.draw_inputs(seed_of("kinds", n)) for n in (0, 1))
        kinds = [kind_of(a, b) for a, b in zip(first, second, strict=True)]
        if all(kind is Kind.CONSTANT for kind in kinds) and self.case.distribution is not None:
            # get_inputs always returns the same: the floats are as good as free.
            return [Kind.FREE if tensor.is_floating_point() else Kind.CONSTANT for tensor in first]
        return kinds

    @cached_property
    def _redrawn(self) -> bool:
        """Whether a distribution gives all values, so that of the file's own only the shapes matter."""
        return self.case.distribution is not None and all(kind is Kind.FREE for kind in self.kinds)

    def _blank(self) -> list[Tensor]:
        return [
            torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=place())
            for spec in self.case.inputs
        ]

    def draw(self, key: str, ordinal: int = 0, *, checking: bool = True) -> Draw:
        """Data that depends on the key, the case and the ordinal alone.

        Args:
            key: a secret.
            ordinal: number of the draw under this key.
            checking: also vary inputs that the file always draws the same, so that none can be left out.
        """
        seed = seed_of(key, self.case.name, ordinal)
        rng = generator(seed_of(seed, "values"))
        own = self._blank() if self._redrawn else self._program.draw_inputs(seed)
        with in_place():
            inputs = [
                tensor
                if kind is Kind.CONSTANT and (self.steady or not checking)
                else redrawn(tensor, kind, self.case.distribution, rng)
                for tensor, kind in zip(own, self.kinds, strict=True)
            ]
            parameters = [perturbed(tensor, rng) for tensor in self._program.draw_parameters(seed)]
        return Draw(inputs, parameters)

    def refiller(self, key: str) -> Refill:
        """Writes data for timed blocks that never repeats, under a key."""

        def fresh(ordinal: int) -> tuple[list[Tensor], list[Tensor]]:
            draw = self.draw(f"{key}/refill", ordinal, checking=False)
            return draw.inputs, draw.parameters

        return Refill(fresh, key)

    # -- what is right -------------------------------------------------------------------------------

    def reference(self, inputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[Tensor]:
        """Outputs computed in float64; where the card notes that this fails, in a narrower type, widened."""
        if self._memory is not None and self._memory[0] is inputs and self._memory[1] is parameters:
            return self._memory[2]
        if self.precision is None:
            found = self._program.run(inputs, parameters)
        else:
            found = self._program.run_in(self.precision, inputs, parameters)
        outputs = [t.double() if t.is_floating_point() else t for t in found]
        if self._remembers and self._memory is None:
            self._memory = (inputs, parameters, outputs)
        return outputs

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Within it, the reference of the draw just asked for is not computed again."""
        self._remembers = True
        try:
            yield
        finally:
            self._remembers, self._memory = False, None

    def nearly(self, inputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[Tensor]:
        """Outputs as the user wrote the model, in float32 where the dtypes are narrower: for timed blocks."""
        if any(tensor.dtype in NARROW for tensor in (*inputs, *parameters)):
            return self._program.run_in(torch.float32, inputs, parameters)
        return self._program.run(inputs, parameters)

    # -- row by row ------------------------------------------------------------------------------------

    def pieces(self, draw: Draw, outputs: Sequence[Tensor]) -> Iterator[tuple[int, Draw, list[Tensor]]]:
        """A draw and its outputs cut along the first dimension, so that wide copies of them fit memory.

        Where rows depend on each other, or everything is small, there is one piece.

        Yields:
            The first row of the piece, its data, its outputs.
        """
        nbytes = sum(spec.nbytes for spec in self.case.arguments)
        rows = outputs[0].shape[0] if outputs[0].dim() else 1
        count = min(rows, -(-nbytes // PIECE_BYTES))
        if count < 2 or not self._apart(draw, rows):
            yield 0, draw, list(outputs)
            return
        step = -(-rows // count)
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            yield start, _rows(draw, part, rows), [output[part] for output in outputs]

    def _apart(self, draw: Draw, rows: int) -> bool:
        """Whether the reference treats rows of a draw apart from each other, as far as two of them tell."""
        if any(spec.shape[:1] != (rows,) for spec in self.case.outputs) or rows < 2:
            return False
        try:
            two = _rows(draw, slice(rows - 2, rows), rows)
            one = _rows(draw, slice(rows - 1, rows), rows)
            together = self.reference(two.inputs, two.parameters)
            alone = self.reference(one.inputs, one.parameters)
        except ProblemError:
            return False
        pairs = zip(together, alone, strict=True)
        return all(a[1:].shape == b.shape and torch.allclose(a[1:], b, equal_nan=True) for a, b in pairs)

    # -- what is to be beaten ------------------------------------------------------------------------

    def framework(self, inputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[Tensor]:
        """Outputs of the model as the user wrote it, in the given dtypes."""
        return self._program.run(inputs, parameters)

    @property
    def named_baselines(self) -> dict[str, Callable[..., Any]]:
        """``BASELINES`` of the file, e.g. a vendor's library: functions of inputs and then parameters."""
        return dict(getattr(self._program.module, "BASELINES", {}))

    def model_over(self, parameters: Sequence[Tensor]) -> nn.Module:
        """A fresh model in eval mode whose parameters and buffers are the given tensors themselves."""
        return self._program.model_over(parameters)

    def bind(self, parameters: Sequence[Tensor]) -> Callable[..., Any]:
        """``model_over`` as a function of the input tensors; what it returns is for ``flatten``."""
        return self._program.bound(self.model_over(parameters))

    def functional(self, *arguments: Tensor) -> Any:
        """The model as a function of inputs and then parameters, e.g. for ``torch.compile``."""
        return self._program.functional(*arguments)

    def flatten(self, found: object) -> list[Tensor]:
        """The outputs as a list, from what ``bind`` or ``functional`` returned."""
        return flat_tensors(found, (), self._program.where)


def _rows(draw: Draw, part: slice, rows: int) -> Draw:
    """Some rows of every input that has as many as the output."""
    return Draw([t[part] if t.shape[:1] == (rows,) else t for t in draw.inputs], draw.parameters)
