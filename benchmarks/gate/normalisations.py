"""Softmax, cross entropy and the norms: sums over rows, then something elementwise."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional

from benchmarks.gate import honest as h
from benchmarks.gate.operation import (
    EVERYDAY,
    Arguments,
    Implementation,
    Operation,
    by_sum,
    declared,
    draw,
    problem,
    rows,
    rows_for,
)


def softmax() -> Operation:
    def no_maximum(x: Tensor) -> Tensor:
        return x.exp() / x.exp().sum(-1, keepdim=True)

    def half(x: Tensor) -> Tensor:
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / (2 * e[..., : (x.shape[-1] + 1) // 2].sum(-1, keepdim=True))

    def online(x: Tensor) -> Tensor:
        top, size = h.online(x)
        return torch.exp(x - top) / size

    forms = {
        f"{name} form": lambda x, e=e: h.softmax(x, h.lanes, e, reciprocal=True) for name, e in h.EXPS.items()
    }
    return Operation(
        "softmax",
        lambda x: torch.softmax(x, -1),
        rows(),
        declared("softmax", "COLS"),
        {**by_sum(lambda s: lambda x: h.softmax(x, s)), **forms, "online": online},
        {
            "no maximum": no_maximum,
            "half the sum": half,
            "uniform": lambda x: torch.full_like(x, 1 / x.shape[-1]),
        },
        narrow=declared("softmax", "COLS", BITS=16),
    )


def cross_entropy() -> Operation:
    def loss(total: h.Sum, exp: h.Exp = torch.exp) -> Implementation:
        def compute(x: Tensor, target: Tensor) -> Tensor:
            each = h.logsumexp(x, total, exp) - x.gather(1, target[:, None])
            return total(each.T)[0, 0] / x.shape[0]

        return compute

    def online(x: Tensor, target: Tensor) -> Tensor:
        top, size = h.online(x)
        return (top + torch.log(size) - x.gather(1, target[:, None])).mean()

    def base_two(x: Tensor, target: Tensor) -> Tensor:
        y = x * h.LOG2E
        top = y.amax(-1, keepdim=True)
        each = top + torch.log2(torch.exp2(y - top).sum(-1, keepdim=True)) - y.gather(1, target[:, None])
        return (each * math.log(2)).mean()

    def arguments(n: int, r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((r, n), kind, rng), torch.randint(0, n, (r,), generator=rng)], []

    return Operation(
        "cross_entropy",
        functional.cross_entropy,
        arguments,
        lambda n: problem("cross_entropy", CLASSES=n, BATCH=rows_for(n)).TOLERANCE,
        {
            **by_sum(loss),
            "polynomial form": loss(h.lanes, h.polynomial_exp),
            "exp2 form": loss(h.lanes, h.exp2_form),
            "online": online,
            "base two": base_two,
        },
        {
            "no maximum": lambda x, t: (torch.log(x.exp().sum(-1)) - x.gather(1, t[:, None])[:, 0]).mean(),
            "half the sum": lambda x, t: functional.cross_entropy(
                x[:, : x.shape[1] // 2], t % (x.shape[1] // 2)
            ),
            "summed": lambda x, t: functional.cross_entropy(x, t, reduction="sum"),
            "one target": lambda x, t: functional.cross_entropy(x, torch.zeros_like(t)),
        },
        narrow=lambda n: problem("cross_entropy", CLASSES=n, BATCH=rows_for(n), BITS=16).TOLERANCE,
        keeps=True,
    )


def layer_norm() -> Operation:
    def norm(total: h.Sum, variance: Any, *, folded: bool = False, eps: float = 1e-5) -> Implementation:
        def compute(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            mean, var = variance(x, total)
            scale = torch.rsqrt(var + eps)
            if folded:
                return x * (scale * weight) + (bias - mean * scale * weight)
            return (x - mean) * scale * weight + bias

        return compute

    def arguments(n: int, r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((r, n), kind, rng)], [1 + 0.5 * draw((n,), "normal", rng), draw((n,), "normal", rng)]

    return Operation(
        "layer_norm",
        lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b),
        arguments,
        declared("layer_norm", "COLS"),
        {
            **by_sum(lambda s: norm(s, h.variance_two_pass)),
            "shifted one pass": norm(h.lanes, h.variance_shifted),
            "merged blocks": norm(h.lanes, h.variance_merged),
            "folded": norm(h.lanes, h.variance_two_pass, folded=True),
        },
        {
            "eps 1e-3": norm(h.framework, h.variance_two_pass, eps=1e-3),
            "eps 1e-6": norm(h.framework, h.variance_two_pass, eps=1e-6),
            "no bias": lambda x, w, _b: functional.layer_norm(x, x.shape[-1:], w),
            "affine": lambda x, w, b: x * w + b,
        },
        narrow=declared("layer_norm", "COLS", BITS=16),
    )


def rms_norm() -> Operation:
    def norm(total: h.Sum, form: str = "scale", eps: float = 1e-6) -> Implementation:
        def compute(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
            t = x + residual
            mean = total(t * t) / t.shape[-1] + eps
            scale = torch.rsqrt(mean)
            by_form = {
                "scale": lambda: t * scale * weight,
                "folded": lambda: t * (scale * weight),
                "weight first": lambda: (t * weight) * scale,
                "division": lambda: t / torch.sqrt(mean) * weight,
            }
            return by_form[form](), t

        return compute

    def reference(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        t = x + residual
        return t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + 1e-6) * weight, t

    return Operation(
        "rms_norm",
        reference,
        lambda n, r, kind, rng: (rows(2)(n, r, kind, rng)[0], [1 + 0.5 * draw((n,), "normal", rng)]),
        declared("rms_norm", "COLS"),
        {
            **by_sum(norm),
            "folded": norm(h.lanes, "folded"),
            "weight first": norm(h.lanes, "weight first"),
            "division": norm(h.lanes, "division"),
        },
        {
            "eps 1e-5": norm(h.framework, eps=1e-5),
            "no weight": lambda x, r, w: reference(x, r, torch.ones_like(w)),
            "no residual": lambda x, r, w: (reference(x, torch.zeros_like(r), w)[0], x + r),
        },
        narrow=declared("rms_norm", "COLS", BITS=16),
    )


def rms_norm_rows() -> Operation:
    def norm(total: h.Sum, form: str = "scale", eps: float = 1e-6) -> Implementation:
        def compute(x: Tensor, weight: Tensor) -> Tensor:
            mean = total(x * x) / x.shape[-1] + eps
            by_form = {
                "scale": lambda: x * torch.rsqrt(mean) * weight,
                "folded": lambda: x * (torch.rsqrt(mean) * weight),
                "division": lambda: x / torch.sqrt(mean) * weight,
            }
            return by_form[form]()

        return compute

    def reference(x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], weight, 1e-6)

    return Operation(
        "rms_norm_rows",
        reference,
        lambda n, r, kind, rng: (rows()(n, r, kind, rng)[0], [1 + 0.5 * draw((n,), "normal", rng)]),
        declared("rms_norm_rows", "COLS"),
        {
            **by_sum(norm),
            "framework's own": reference,
            "folded": norm(h.lanes, "folded"),
            "division": norm(h.lanes, "division"),
            "256 lanes": norm(lambda x: h.lanes(x, 256)),
        },
        {
            "eps 1e-5": norm(h.framework, eps=1e-5),
            "no weight": lambda x, w: reference(x, torch.ones_like(w)),
            "half the row": lambda x, w: norm(lambda s: 2 * h.framework(s[..., ::2]))(x, w),
        },
        narrow=declared("rms_norm_rows", "COLS", BITS=16),
    )


def softmax_long() -> Operation:
    """Sums as GPUs do them: no lane gets more than a few hundred terms."""

    def by_lanes(width: int, exp: h.Exp = torch.exp) -> Implementation:
        return lambda x: h.softmax(x, lambda e: h.lanes(e, width), exp)

    def online(block: int) -> Implementation:
        def compute(x: Tensor) -> Tensor:
            top, size = h.online(x, block=block)
            return torch.exp(x - top) / size

        return compute

    def half(x: Tensor) -> Tensor:
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / (2 * e[..., : (x.shape[-1] + 1) // 2].sum(-1, keepdim=True))

    return Operation(
        "softmax_long",
        lambda x: torch.softmax(x, -1),
        rows(),
        declared("softmax_long", "COLS"),
        {
            "framework": lambda x: torch.softmax(x, -1),
            "pairwise": lambda x: h.softmax(x, h.pairwise),
            "1024 lanes": by_lanes(1024),
            "4096 lanes": by_lanes(4096, h.exp2_form),
            "online, tiles of 8192": online(8192),
            "in 12 parts": lambda x: h.softmax(
                x, lambda e: h.pairwise(torch.cat([h.lanes(part, 1024) for part in e.chunk(12, -1)], -1))
            ),
        },
        {"half the sum": half, "uniform": lambda x: torch.full_like(x, 1 / x.shape[-1])},
        lengths=(127, 393216),
    )


def batch_norm() -> Operation:
    def norm(form: str, eps: float = 1e-5) -> Implementation:
        def compute(x: Tensor, *vectors: Tensor) -> Tensor:
            weight, bias, mean, variance = (v[:, None] for v in vectors)
            scale = torch.rsqrt(variance + eps)
            by_form = {
                "scaled": lambda: (x - mean) * scale * weight + bias,
                "divided": lambda: (x - mean) / torch.sqrt(variance + eps) * weight + bias,
                "gain first": lambda: (x - mean) * (scale * weight) + bias,
                "folded": lambda: x * (scale * weight) + (bias - mean * scale * weight),
                "fused": lambda: h.fused(
                    x, (scale * weight).expand_as(x), (bias - mean * scale * weight).expand_as(x)
                ),
            }
            return by_form[form]()

        return compute

    def reference(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        return functional.batch_norm(x, mean, variance, weight, bias)

    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        weight, bias, mean = (draw((16,), "normal", rng) for _ in range(3))
        return [draw((4, 16, n), kind, rng)], [weight, bias, mean, 0.1 + draw((16,), "uniform", rng).square()]

    return Operation(
        "batch_norm",
        reference,
        arguments,
        lambda _n: {"operation": "batch_norm"},
        {form: norm(form) for form in ("scaled", "divided", "gain first", "folded", "fused")},
        {"eps 1e-3": norm("scaled", 1e-3), "no mean": lambda x, w, b, m, v: reference(x, w, b, 0 * m, v)},
        lengths=(7, 512),
        distributions=EVERYDAY,
    )
