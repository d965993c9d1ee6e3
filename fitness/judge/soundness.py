"""Proof, by running it, that a reference computes a function of its inputs and of nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.program import Program
from fitness.judge.structure import Kind
from fitness.judge.usercode import seed_of, seeded
from fitness.target import ProblemError

KEY = "soundness"
AGREEMENT = 0.1  # relative L2 distance of float64 and the model as written, beyond which they differ in kind


def examine(loaded: LoadedCase) -> tuple[LoadedCase, list[str]]:
    """Run the reference a few times on one case.

    Returns:
        The case with the precision that its reference can run in, and notes for the card.

    Raises:
        ProblemError: the reference is random, changes its arguments, depends on what is no argument, is
            not finite anywhere, or has outputs whose shape depends on the data.
    """
    program = loaded.program
    draw, other = (loaded.draw(KEY, ordinal, checking=False) for ordinal in (0, 1))
    _steady_shapes("get_inputs()", program, draw.inputs, other.inputs)
    with seeded(1):
        outputs = _run_unchanged(loaded, draw)
    with seeded(2):
        again = loaded.framework(draw.inputs, draw.parameters)
    _steady_shapes("Model.forward", program, outputs, again)
    if not all(_same(a, b) for a, b in zip(outputs, again, strict=True)):
        raise ProblemError(
            f"{program.where}: Model.forward gives different results on the same input; "
            "take chance out of it (dropout must follow self.training)"
        )
    _steady_shapes("Model.forward", program, outputs, loaded.framework(other.inputs, other.parameters))
    notes = _hidden_tensors(program)
    scalars = program.arguments.scalars
    if scalars:
        notes.append("numbers among the inputs are constants: " + ", ".join(map(str, scalars)))
    floats = [t for t in outputs if t.is_floating_point()]
    if floats and all(bool(t.isnan().all()) for t in floats):
        raise ProblemError(
            f"{program.where}: Model.forward gives only NaN on its own inputs; mend it or get_inputs()"
        )
    precision, remark = _precision(program, draw, outputs)
    if remark:
        notes.append(remark)
    steady = False
    if Kind.CONSTANT in loaded.kinds and _finite(outputs):
        varied = loaded.draw(KEY)
        steady = not _finite(loaded.framework(varied.inputs, varied.parameters))
    return loaded.examined(precision, steady=steady), notes


def _run_unchanged(loaded: LoadedCase, draw: Draw) -> list[Tensor]:
    before = [tensor.clone() for tensor in draw.inputs + draw.parameters]
    outputs = loaded.framework(draw.inputs, draw.parameters)
    names = [spec.name for spec in loaded.case.inputs + loaded.case.parameters]
    for name, old, new in zip(names, before, draw.inputs + draw.parameters, strict=True):
        if not torch.equal(old.reshape(-1).view(torch.uint8), new.reshape(-1).view(torch.uint8)):
            raise ProblemError(
                f"{loaded.program.where}: Model.forward changes its argument {name}; work on a copy, "
                "and use no in-place operation on it"
            )
    return outputs


def _steady_shapes(what: str, program: Program, first: Sequence[Tensor], second: Sequence[Tensor]) -> None:
    kinds = [[(tuple(t.shape), t.dtype) for t in tensors] for tensors in (first, second)]
    if kinds[0] != kinds[1]:
        raise ProblemError(
            f"{program.where}: {what} returns other shapes from call to call; "
            "make them depend on constants alone"
        )


def _same(first: Tensor, second: Tensor) -> bool:
    if not first.is_floating_point():
        return torch.equal(first, second)
    scale = float(first[first.isfinite()].abs().max()) if bool(first.isfinite().any()) else 0.0
    return torch.allclose(first, second, rtol=1e-4, atol=1e-5 * scale, equal_nan=True)


def _hidden_tensors(program: Program) -> list[str]:
    """Notes on tensors that the model keeps outside of its state."""
    found = []
    again = dict(program.build(seed_of("another model")).named_modules())
    state = set(program.aliases)
    for path, module in program.skeleton.named_modules():
        for name, value in {**vars(module), **module._buffers}.items():
            full = f"{path}.{name}" if path else name
            twin = {**vars(again[path]), **again[path]._buffers}.get(name)
            if not isinstance(value, Tensor) or full in state or not isinstance(twin, Tensor):
                continue
            if not torch.equal(value, twin):
                raise ProblemError(
                    f"{program.where}: self.{full} is random but not in the state dict; "
                    "make it a parameter or a buffer, so that a kernel gets it as an argument"
                )
            found.append(f"self.{full} is no argument: a kernel has to contain it")
    return found


def _precision(program: Program, draw: Draw, outputs: list[Tensor]) -> tuple[torch.dtype | None, str | None]:
    """The widest type that the reference runs in and means the same, and a remark where it is not float64."""
    for dtype, remark in (
        (torch.float64, None),
        (torch.float32, "the reference cannot run in float64: computed in float32"),
    ):
        try:
            wide = program.run_in(dtype, draw.inputs, draw.parameters)
        except ProblemError:
            continue
        if len(wide) == len(outputs) and all(_agree(a, b) for a, b in zip(wide, outputs, strict=True)):
            return dtype, remark
    return None, "the reference cannot run in float64: computed as it is written"


def _agree(wide: Tensor, narrow: Tensor) -> bool:
    if wide.shape != narrow.shape:
        return False
    if not narrow.is_floating_point():
        return wide.dtype == narrow.dtype
    a, b = wide.double(), narrow.double()
    finite = a.isfinite() & b.isfinite()
    distance = float((a - b)[finite].norm())
    return bool(distance <= AGREEMENT * float(a[finite].norm()) + 1e-3 * a.numel() ** 0.5)


def _finite(outputs: Sequence[Tensor]) -> bool:
    return all(bool(t.isfinite().all()) for t in outputs if t.is_floating_point())


def runs_well(loaded: LoadedCase, key: str = KEY) -> bool:
    """Whether a case runs, finite, and the model as written agrees with its reference."""
    try:
        draw = loaded.draw(key)
        outputs = loaded.framework(draw.inputs, draw.parameters)
        wide = loaded.reference(draw.inputs, draw.parameters)
    except ProblemError:
        return False
    return (
        _finite(outputs)
        and _finite(wide)
        and all(
            _agree(a.double() if a.is_floating_point() else a, b) for a, b in zip(wide, outputs, strict=True)
        )
    )
