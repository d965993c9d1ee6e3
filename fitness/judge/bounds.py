"""How far from the exact result a kernel may be: one line of a table for each operation.

A bound is elementwise and absolute, around the value ``y`` that float64 gives. It models an honest float32
implementation of the operation: the rounding of its inputs' products and sums, the error of an exponential a
few units in the last place wide, and one rounding of the output (``u_out * |y|``, added to every line). Every
function computes in the dtype of the tensors it is given: float64 in the gate, float32 in timed blocks.
``docs/gate.md`` holds the table and says how it was calibrated.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fitness.card import TensorSpec
from fitness.judge.forward_models import TABLE, Allowance, Operands
from fitness.judge.place import in_place
from fitness.judge.sampled import Reference, sampled_bounds
from fitness.target import ProblemError

# None, a line of the table, one for each output, {"atol", "rtol"}, or a function in the problem file.
Tolerance = None | Mapping[str, Any] | Sequence[Mapping[str, Any]] | Callable[..., Sequence[Tensor]]

U_FLOAT32 = 2.0**-24
UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": U_FLOAT32, "bfloat16": 2.0**-8, "float16": 2.0**-11}
SUBNORMALS = 4.0  # roundings among subnormal numbers that any kernel may make, beside those of a sum


@dataclass(frozen=True)
class Bound:
    """What one output is allowed.

    Attributes:
        elementwise: allowed absolute error, as a tensor that broadcasts to the output.
        n: length of the reduction behind one element; 0 where there is none.
        u_acc: unit roundoff of the accumulation.
        u_out: unit roundoff of the output's dtype; 0 for whole numbers.
        statistical: whether the aggregate checks (relative L2, mean signed error) apply: they need a
            forward model, which a tolerance given by the user is not.
        typical: for sums, how large a result of random signs is: what relative L2 is relative to.
        values: for an output of positions (argmax): what is looked up there, reduced dimension last.
    """

    elementwise: Tensor
    n: int
    u_acc: float
    u_out: float
    statistical: bool = True
    typical: Tensor | None = None
    values: Tensor | None = None


def bounds(
    tolerance: Tolerance,
    inputs: list[Tensor],
    parameters: list[Tensor],
    outputs: list[Tensor],
    specs: Sequence[TensorSpec],
    reference: Reference | None = None,
    *,
    surely: bool = False,
) -> list[Bound]:
    """The bound of each output.

    Args:
        tolerance: the problem's ``TOLERANCE``.
        inputs, parameters: the entry's arguments, widened to the dtype to compute in.
        outputs: the reference's results on them.
        specs: names and dtypes of the outputs as the kernel must write them.
        reference: ``reference(inputs, parameters) -> outputs``; only the sampled forward model
            (``tolerance`` None) calls it.
        surely: see ``sampled.sampled_bounds``.

    Raises:
        ProblemError: an operation that the table lacks, or a declaration that does not fit the outputs.
    """
    if tolerance is None:
        if reference is None:
            raise ProblemError(
                "TOLERANCE is not declared and there is no reference to sample an error model from"
            )
        allowed = sampled_bounds(reference, inputs, parameters, outputs, surely=surely)
        return [_bound(Allowance(a), y, spec) for a, y, spec in zip(allowed, outputs, specs, strict=True)]
    if callable(tolerance):
        with in_place():
            declared = list(tolerance(inputs, parameters, outputs, _accumulation(specs)))
        _expect(len(declared), specs)
        return [_bound(Allowance(a), y, spec) for a, y, spec in zip(declared, outputs, specs, strict=True)]
    lines = [tolerance] * len(specs) if isinstance(tolerance, Mapping) else list(tolerance)
    _expect(len(lines), specs)
    return [
        _line(line, inputs, parameters, y, spec) for line, y, spec in zip(lines, outputs, specs, strict=True)
    ]


def describe(tolerance: Tolerance) -> str:
    """The declaration in words, e.g. "softmax over dim -1" or "sampled forward model"."""
    if tolerance is None:
        return "sampled forward model"
    if callable(tolerance):
        first = (tolerance.__doc__ or "").strip().split("\n")[0].rstrip(".")
        return first or "composed in the problem file"
    if not isinstance(tolerance, Mapping):
        return "; ".join(describe(line) for line in tolerance)
    if "operation" not in tolerance:
        return f"atol {tolerance.get('atol', 0.0):g}, rtol {tolerance.get('rtol', 0.0):g}"
    dim = tolerance.get("dim")
    return f"{tolerance['operation']}" + (f" over dim {dim}" if dim is not None else "")


def _line(
    line: Mapping[str, Any], inputs: list[Tensor], parameters: list[Tensor], y: Tensor, spec: TensorSpec
) -> Bound:
    if "operation" not in line:
        unknown = set(line) - {"atol", "rtol"}
        if unknown or not line:
            raise ProblemError(f"TOLERANCE {dict(line)}: give an 'operation', or 'atol' and 'rtol'")
        allowed = float(line.get("atol", 0.0)) + float(line.get("rtol", 0.0)) * y.abs()
        return Bound(allowed, 0, U_FLOAT32, _unit(spec), statistical=False)
    name = line["operation"]
    if name not in TABLE:
        near = difflib.get_close_matches(str(name), TABLE, n=1, cutoff=0.0)[0]
        raise ProblemError(f"TOLERANCE: there is no operation {name!r}; the nearest is {near!r}")
    if name in ("argmax", "argmin"):
        values = inputs[line.get("input", 0)].movedim(line.get("dim", -1), -1)
        return Bound(torch.zeros_like(y), 0, U_FLOAT32, 0.0, statistical=False, values=values)
    u = _accumulation([spec])
    allowance = TABLE[name](Operands(line, inputs, parameters, y, u))
    if name in EXACT:
        allowed = torch.where(_representable(y, spec), 0.0, _unit(spec) * y.abs())
        return Bound(allowed, 0, u, _unit(spec), statistical=False)
    return _bound(allowance, y, spec)


EXACT = ("copy", "relu", "max", "min", "gather", "add", "sub", "mul")


def _bound(allowance: Allowance, y: Tensor, spec: TensorSpec) -> Bound:
    """What is allowed by the forward model, and one rounding of the output."""
    if not y.is_floating_point():
        return Bound(allowance.error, 0, U_FLOAT32, 0.0, statistical=False)
    u_out = _unit(spec)
    output = torch.finfo(getattr(torch, spec.dtype))
    smallest = output.tiny * output.eps  # the smallest subnormal
    lost = (SUBNORMALS + allowance.n) * smallest
    u = _accumulation([spec])
    typical = None if allowance.typical is None else allowance.typical + lost / u
    return Bound(allowance.error + u_out * y.abs() + lost, allowance.n, u, u_out, typical=typical)


def _unit(spec: TensorSpec) -> float:
    return UNIT_ROUNDOFF.get(spec.dtype, 0.0)


def _accumulation(specs: Sequence[TensorSpec]) -> float:
    """Unit roundoff of sums: float32's, but for results wanted in float64."""
    return min([U_FLOAT32, *(UNIT_ROUNDOFF["float64"] for spec in specs if spec.dtype == "float64")])


def _representable(y: Tensor, spec: TensorSpec) -> Tensor:
    return y.to(getattr(torch, spec.dtype)).to(y.dtype) == y


def _expect(count: int, specs: Sequence[TensorSpec]) -> None:
    if count != len(specs):
        raise ProblemError(f"TOLERANCE gives {count} bounds for {len(specs)} outputs")
