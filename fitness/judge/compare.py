"""Is this output right? Every element against the reference, in units of what its bound allows.

Checks in order: shape and dtype; NaN and infinities where the reference (rounded to the output's dtype) has
them and nowhere else; the relative L2 error; every element, written as "not within the bound" so that NaN
fails; and the mean signed error over rows, which an honest kernel keeps near zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fitness.judge.bounds import Bound
from populations.verdict import Evidence

ROWS = 30  # a mean over fewer rows says nothing
SIGMAS = 5.0
L2 = 2.0  # the factor c of the relative L2 error
SMALLEST = {torch.float64: 2.0**-1074, torch.float32: 2.0**-149}
BIAS = 0.5  # of the bound: a rounded reciprocal, or a long sum in one float, leans in honest kernels too


@dataclass(frozen=True)
class Comparison:
    """How a result compares.

    Attributes:
        max_error: the worst of all checks, in units of what is allowed: above 1 is wrong.
        evidence: the worst element and the check that failed; None where nothing did.
    """

    max_error: float
    evidence: Evidence | None = None


def compare(
    got: Sequence[Tensor], want: Sequence[Tensor], bounds: Sequence[Bound], *, scale: float = 1.0
) -> Comparison:
    """Compare a kernel's outputs with the reference's.

    Args:
        got: the kernel's outputs, in the dtypes that it must write.
        want: the reference's: float64 in the gate, a trusted baseline's float32 in timed blocks.
        bounds: from ``bounds.bounds``, around ``want``.
        scale: how many bounds are allowed. Above 1 (timed blocks) the statistical checks are left out.

    Returns:
        The first failing check's evidence; ``max_error`` in units of ``scale`` bounds, infinite where the
        shape or the NaN and infinity masks are wrong.
    """
    worst = 0.0
    for number, (g, w, bound) in enumerate(zip(got, want, bounds, strict=True)):
        found = _compare(g, w, bound, scale)
        if found.evidence:
            return replace(found, evidence=replace(found.evidence, output=number))
        worst = max(worst, found.max_error)
    return Comparison(worst)


def _compare(got: Tensor, want: Tensor, bound: Bound, scale: float) -> Comparison:
    if got.shape != want.shape:
        return _refused(f"shape is {list(got.shape)}, expected {list(want.shape)}")
    if got.is_floating_point() != want.is_floating_point():
        return _refused(f"dtype is {_name(got)}, expected {_name(want)}")
    if got.numel() == 0:
        return Comparison(0.0)
    if bound.values is not None:
        return _positions(got, want, bound.values)
    if not got.is_floating_point():
        return _elements(got.double(), want.double(), bound.elementwise.double())
    exact = got if got.dtype == want.dtype else got.to(want.dtype)
    found = _elements(exact, want, bound.elementwise * scale)
    if math.isfinite(found.max_error):  # and so is every number on both sides
        return _with_statistics(found, exact, want, bound) if scale == 1.0 else found
    return _masked(got, want, bound, scale)


def _elements(got: Tensor, want: Tensor, allowed: Tensor) -> Comparison:
    """Every element; ``max_error`` is NaN or infinite where NaN or infinities are among them."""
    error, ratio = errors(got, want, allowed)
    worst = float(ratio.max())
    if worst <= 1.0 or math.isnan(worst):
        return Comparison(worst)
    return Comparison(worst, _evidence(int(ratio.argmax()), got, want, error, allowed))


def errors(got: Tensor, want: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Each element's error, and in units of what is allowed: where that is nothing, 0 / 0 is right."""
    error = (got - want).abs_()
    return error, error / allowed.clamp_min(SMALLEST[error.dtype])


def _masked(got: Tensor, want: Tensor, bound: Bound, scale: float) -> Comparison:
    """NaN or infinities somewhere: they must stand where the rounded reference has them."""
    rounded = want.to(got.dtype)
    for log, wrong in (
        ("output not written or NaN", got.isnan() & ~rounded.isnan()),
        ("a NaN was expected", rounded.isnan() & ~got.isnan()),
        ("an infinity was not expected", got.isinf() & (got != rounded)),
        ("an infinity was expected", rounded.isinf() & (got != rounded)),
    ):
        if bool(wrong.any()):
            return Comparison(
                math.inf, replace(_where(int(wrong.flatten().to(torch.uint8).argmax()), got, want), log=log)
            )
    finite = torch.isfinite(rounded)
    nothing = torch.zeros((), dtype=want.dtype, device=want.device)
    g, w = (torch.where(finite, t.to(want.dtype), nothing) for t in (got, want))
    allowed = torch.where(finite, bound.elementwise.expand_as(want), nothing + 1.0)
    found = _elements(g, w, allowed * scale)
    return _with_statistics(found, g, w, replace(bound, elementwise=allowed)) if scale == 1.0 else found


def _with_statistics(found: Comparison, got: Tensor, want: Tensor, bound: Bound) -> Comparison:
    """The checks on all elements together; the relative L2 error comes first in the order of the gate."""
    if not bound.statistical:
        return found
    error = got - want
    allowed = bound.elementwise.expand_as(want)
    size, norm = _norm(want), _norm(error)
    # Honest code stays below a third of its share everywhere; rounding the output takes all of its own.
    limit = (_norm(allowed) + bound.u_out * size) / 2
    if bound.typical is not None:
        usual = max(size, _norm(bound.typical.nan_to_num(0.0, 0.0, 0.0).expand_as(want)))
        limit = min(limit, L2 * (bound.u_acc * (4 + math.sqrt(bound.n)) + bound.u_out) * usual)
    if not norm <= limit:
        ratio = norm / limit
        worst = max(ratio, found.max_error)
        at = int((error.abs() / allowed).nan_to_num(0.0).argmax())
        log = f"relative L2 error {norm / max(size, 1e-300):.3g} is {ratio:.3g} times what is allowed"
        return Comparison(worst, replace(_evidence(at, got, want, error.abs(), allowed), log=log))
    if found.evidence:
        return found
    bias = _bias(error, want, allowed, bound.u_out)
    if bias > 1.0:
        log = f"errors lean to one side: their mean over rows is {bias:.3g} times what is allowed"
        return Comparison(max(bias, found.max_error), Evidence(log=log))
    return found


def _bias(error: Tensor, want: Tensor, allowed: Tensor, u_out: float) -> float:
    """Mean signed error over independent rows, in units of what is allowed; outwards and upwards.

    A row's elements share one factor, so a row counts once. Allowed are five standard errors of the mean, and
    in any case a share of the bound, and all of what rounds the output: equal results round alike.
    """
    if error.dim() < 2 or error.shape[:-1].numel() < ROWS:
        return 0.0
    relative = (error / allowed).nan_to_num(0.0)
    rounding = float((u_out * want.abs() / allowed).nan_to_num(0.0).mean())
    within = BIAS + (1 - BIAS) * rounding
    worst = 0.0
    for signed in (relative, relative * want.sign()):
        rows = signed.mean(dim=-1).flatten()
        spread = float(rows.std()) / math.sqrt(rows.numel())
        worst = max(worst, abs(float(rows.mean())) / max(SIGMAS * spread, within))
    return worst


def _positions(got: Tensor, want: Tensor, values: Tensor) -> Comparison:
    """Positions of extremes: the value found there must be the extreme; among ties any will do."""
    inside = (got >= 0) & (got < values.shape[-1])
    if not bool(inside.all()):
        at = int((~inside).flatten().to(torch.uint8).argmax())
        return Comparison(math.inf, replace(_where(at, got, want), log="position out of range"))
    found, extreme = (
        values.gather(-1, p.long().reshape(*values.shape[:-1], 1)).reshape(want.shape) for p in (got, want)
    )
    wrong = ~((found == extreme) | (found.isnan() & extreme.isnan()))
    if bool(wrong.any()):
        at = int(wrong.flatten().to(torch.uint8).argmax())
        return Comparison(math.inf, replace(_where(at, got, want), log="not the position of the extreme"))
    return Comparison(0.0)


def _evidence(at: int, got: Tensor, want: Tensor, error: Tensor, allowed: Tensor) -> Evidence:
    bound = float(allowed.expand_as(want).flatten()[at])
    return replace(_where(at, got, want), error=float(error.flatten()[at]), bound=bound)


def _where(at: int, got: Tensor, want: Tensor) -> Evidence:
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), want.shape)) if want.dim() else ()
    return Evidence(index=index, got=float(got.flatten()[at]), expected=float(want.flatten()[at]))


def _refused(log: str) -> Comparison:
    return Comparison(math.inf, Evidence(log=log))


def _norm(t: Tensor) -> float:
    return float(torch.linalg.vector_norm(t))


def _name(t: Tensor) -> str:
    return str(t.dtype).removeprefix("torch.")
