"""Causal attention with shared heads of keys and values: two products, and a softmax between them."""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from benchmarks.gate import honest as h
from benchmarks.gate.operation import EVERYDAY, Arguments, Implementation, Operation, by_sum, draw, problem


def grouped(of_one_head: Implementation) -> Implementation:
    """The implementation of one head, applied to every head of queries and the keys that it shares."""

    def compute(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        share = q.shape[1] // k.shape[1]
        rows = [
            torch.stack([of_one_head(q[b, i], k[b, i // share], v[b, i // share]) for i in range(q.shape[1])])
            for b in range(q.shape[0])
        ]
        return torch.stack(rows)

    return compute


def masked(scores: Tensor, offset: int = 1) -> Tensor:
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(offset), -torch.inf)


def tiles(size: int, keep: torch.dtype | None = None, exp: h.Exp = torch.exp) -> Implementation:
    """Keys in tiles, maximum and sum carried along; ``keep``: what exponentials are rounded to."""

    def compute(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = masked((q @ k.T) * q.shape[-1] ** -0.5)
        top = torch.full_like(scores[:, :1], -torch.inf)
        total, out = torch.zeros_like(top), torch.zeros_like(q)
        for part, values in zip(scores.split(size, -1), v.split(size), strict=True):
            higher = torch.maximum(top, part.amax(-1, keepdim=True))
            p, shrunk = exp(part - higher), exp(top - higher)
            total = total * shrunk + p.sum(-1, keepdim=True)
            out = out * shrunk + (p if keep is None else p.to(keep).to(p.dtype)) @ values
            top = higher
        return out / total

    return grouped(compute)


def attention() -> Operation:
    def plain(total: h.Sum, exp: h.Exp = torch.exp) -> Implementation:
        def compute(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            scores = masked(h.product(q, k.T.contiguous(), total) / q.shape[-1] ** 0.5)
            return h.product(h.softmax(scores, total, exp), v, total)

        return grouped(compute)

    def reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    def scaled_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return masked((q * (h.LOG2E / q.shape[-1] ** 0.5)) @ k.T).mul(1 / h.LOG2E).softmax(-1) @ v

    def changed(offset: int = 1, scale: float = 1.0) -> Implementation:
        return grouped(
            lambda q, k, v: (
                masked(scale * (q @ k.T) / q.shape[-1] ** 0.5, offset).softmax(-1).nan_to_num() @ v
            )
        )

    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((1, heads, n, 32), kind, rng) for heads in (4, 2, 2)], []

    narrow = torch.bfloat16
    return Operation(
        "causal attention",
        reference,
        arguments,
        lambda _n: problem("attention").TOLERANCE,
        {
            **by_sum(plain),
            "framework": reference,
            "exp2 form": plain(h.lanes, h.exp2_form),
            "tiles of 16": tiles(16),
            "tiles of 64": tiles(64, exp=h.exp2_form),
            "scaled first": grouped(scaled_first),
        },
        {
            "not causal": lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
            "one too few": changed(offset=0),
            "not scaled": changed(scale=32**0.5),
            "other heads": lambda q, k, v: reference(q, k.flip(1), v.flip(1)),
        },
        lengths=(7, 40, 128),
        distributions=EVERYDAY,
        narrow=lambda _n: problem("attention", BITS=16).TOLERANCE,
        narrow_honest={
            "native": lambda *tensors: reference(*(t.bfloat16() for t in tensors)).float(),
            "whole row, rounded": tiles(1 << 20, narrow),
            "tiles of 16, rounded": tiles(16, narrow),
            "tiles of 64, rounded": tiles(64, narrow, h.exp2_form),
            "tiles of 32, not rounded": tiles(32),
        },
        coarse={"exponentials in 4 bits": tiles(64, torch.float8_e4m3fn)},
    )
