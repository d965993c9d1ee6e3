"""Activations, rotary embedding and quantisation: little or nothing is summed."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor
from torch.nn import functional

from benchmarks.gate import honest as h
from benchmarks.gate.operation import (
    EVERYDAY,
    Arguments,
    Implementation,
    Operation,
    declared,
    draw,
    rows,
)


def gelu_tanh() -> Operation:
    def by_exp(exp: h.Exp) -> Implementation:
        return lambda x: x / (1 + exp(-2 * h.gelu_argument(x)))

    def rational_tanh(x: Tensor) -> Tensor:
        """A clipped rational tanh, wrong by up to some 5e-4."""
        u = h.gelu_argument(x).clamp(-3, 3)
        return 0.5 * x * (1 + u * (27 + u * u) / (27 + 9 * u * u))

    return Operation(
        "gelu_tanh",
        lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
        rows(),
        declared("gelu_tanh", "COLS"),
        {
            "expression": lambda x: 0.5 * x * (1 + torch.tanh(h.gelu_argument(x))),
            "framework": lambda x: functional.gelu(x, approximate="tanh"),
            "sigmoid form": lambda x: x * torch.sigmoid(2 * h.gelu_argument(x)),
            "subtracted": lambda x: x - x / (1 + torch.exp(2 * h.gelu_argument(x))),
            "factored": lambda x: x / (1 + torch.exp(x * (-1.5957691216 - 0.0713548162726 * x * x))),
            **{f"{name} form": by_exp(e) for name, e in h.EXPS.items()},
        },
        {
            "erf": functional.gelu,
            "rational tanh": rational_tanh,
            "quick": lambda x: x * torch.sigmoid(1.702 * x),
            "relu": functional.relu,
        },
        lengths=(7, 4096),
        narrow=declared("gelu_tanh", "COLS", BITS=16),
    )


def swiglu() -> Operation:
    def silu(exp: h.Exp, *, reciprocal: bool = False) -> Implementation:
        def compute(x: Tensor) -> Tensor:
            gate, up = x.chunk(2, -1)
            below = 1 + exp(-gate)
            return gate * (1 / below) * up if reciprocal else gate / below * up

        return compute

    def reference(x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return functional.silu(gate) * up

    return Operation(
        "swiglu",
        reference,
        lambda n, r, kind, rng: ([draw((r, 2 * n), kind, rng)], []),
        declared("swiglu", "COLS"),
        {
            "framework": reference,
            "product first": lambda x: (
                x.chunk(2, -1)[0] * x.chunk(2, -1)[1] * torch.sigmoid(x.chunk(2, -1)[0])
            ),
            "reciprocal": silu(torch.exp, reciprocal=True),
            **{f"{name} form": silu(e) for name, e in h.EXPS.items()},
        },
        {
            "halves swapped": lambda x: reference(torch.cat(x.chunk(2, -1)[::-1], -1)),
            "hard sigmoid": lambda x: (
                functional.hardsigmoid(x.chunk(2, -1)[0]) * x.chunk(2, -1)[0] * x.chunk(2, -1)[1]
            ),
        },
        lengths=(7, 4096),
        narrow=declared("swiglu", "COLS", BITS=16),
    )


def rope() -> Operation:
    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)

    def arguments(n: int, r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        angle = 100 * torch.rand((8, n), generator=rng)
        return [draw((1, r, 8, n), kind, rng), angle.cos(), angle.sin()], []

    return Operation(
        "rope",
        lambda x, c, s: x * c + turned(x) * s,
        arguments,
        declared("rope", "DIM"),
        {
            "two roundings": lambda x, c, s: x * c + turned(x) * s,
            "fused first": lambda x, c, s: h.fused(x, c, turned(x) * s),
            "fused second": lambda x, c, s: h.fused(turned(x), s, x * c),
            "subtracted": lambda x, c, s: x * c - turned(-x) * s,
            "one rounding": lambda x, c, s: (x.double() * c + turned(x).double() * s).float(),
        },
        {
            "other sign": lambda x, c, s: x * c - turned(x) * s,
            "angles swapped": lambda x, c, s: x * s + turned(x) * c,
            "copied": lambda x, _c, _s: x,
        },
        lengths=(2, 128),
        narrow=declared("rope", "DIM", BITS=16),
    )


def quantize_int8() -> Operation:
    def scale_of(x: Tensor) -> Tensor:
        top = x.abs().amax(-1, keepdim=True)
        return torch.where(top > 0, top / 127, torch.ones_like(top))

    def whole(q: Tensor) -> Tensor:
        return q.clamp(-127, 127).to(torch.int8)

    def by_division(x: Tensor) -> tuple[Tensor, Tensor]:
        return whole(torch.round(x / scale_of(x))), scale_of(x)

    def by_maximum(x: Tensor) -> tuple[Tensor, Tensor]:
        top = x.abs().amax(-1, keepdim=True)
        return whole(torch.round(x * torch.where(top > 0, 127 / top, torch.ones_like(top)))), scale_of(x)

    def by_constant(x: Tensor) -> tuple[Tensor, Tensor]:
        top = x.abs().amax(-1, keepdim=True)
        scale = torch.where(top > 0, top * torch.tensor(1 / 127), torch.ones_like(top))
        return whole(torch.round(x * (1 / scale))), scale

    def truncated(x: Tensor) -> tuple[Tensor, Tensor]:
        return whole(torch.trunc(x / scale_of(x))), scale_of(x)

    def early(x: Tensor) -> tuple[Tensor, Tensor]:
        q = x / scale_of(x)
        return whole(torch.trunc(q + 0.51 * q.sign())), scale_of(x)

    def of_128(x: Tensor) -> tuple[Tensor, Tensor]:
        scale = scale_of(x) * 127 / 128
        return whole(torch.round(x / scale)), scale

    magic = 12582912.0  # 1.5 · 2^23: adding it rounds to a whole number
    return Operation(
        "quantize_int8",
        by_division,
        rows(),
        declared("quantize_int8", "COLS"),
        {
            "division": by_division,
            "reciprocal": lambda x: (whole(torch.round(x * (1 / scale_of(x)))), scale_of(x)),
            "maximum": by_maximum,
            "constant": by_constant,
            "magic number": lambda x: (whole((x / scale_of(x) + magic) - magic), scale_of(x)),
        },
        {"truncated": truncated, "rounds up early": early, "over 128": of_128},
        lengths=(7, 4096),
        distributions=(*EVERYDAY, "large", "tiny", "ties"),
        narrow=declared("quantize_int8", "COLS", BITS=16),
        keeps=True,
    )
