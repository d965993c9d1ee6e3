"""Sums, scans, products and convolutions."""

from __future__ import annotations

from collections.abc import Callable

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
)


def depthwise_conv3x3() -> Operation:
    def taps(total: h.Sum) -> Implementation:
        return lambda x, w: total(h.windows(x, 3) * w.flatten(1)[:, None, None, :])[..., 0]

    def fused_taps(x: Tensor, w: Tensor) -> Tensor:
        parts = h.windows(x, 3).unbind(-1)
        out = torch.zeros_like(parts[0])
        for part, tap in zip(parts, w.flatten(1).unbind(-1), strict=True):
            out = h.fused(part, tap[:, None, None].expand_as(part), out)
        return out

    def by_rows(x: Tensor, w: Tensor) -> Tensor:
        terms = h.windows(x, 3) * w.flatten(1)[:, None, None, :]
        return h.sequential(h.sequential(terms.unflatten(-1, (3, 3)))[..., 0])[..., 0]

    return Operation(
        "depthwise_conv3x3",
        lambda x, w: functional.conv2d(x, w, groups=w.shape[0]),
        lambda n, _r, kind, rng: ([draw((1, 8, n, n), kind, rng)], [draw((8, 1, 3, 3), "uniform", rng) / 3]),
        lambda _n: problem("depthwise_conv3x3", CHANNELS=8).TOLERANCE,
        {**by_sum(taps), "fused": fused_taps, "row by row": by_rows},
        {
            "eight taps": lambda x, w: h.framework(
                (h.windows(x, 3) * w.flatten(1)[:, None, None, :])[..., :8]
            )[..., 0],
            "flipped": lambda x, w: functional.conv2d(x, w.flip(-1), groups=w.shape[0]),
        },
        lengths=(5, 64),
        narrow=lambda _n: problem("depthwise_conv3x3", CHANNELS=8, BITS=16).TOLERANCE,
    )


def masked_cumsum() -> Operation:
    def scan(f: Callable[[Tensor], Tensor]) -> Implementation:
        return lambda x, mask: f(torch.where(mask, x, 0.0))

    def arguments(n: int, r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((r, n), kind, rng), torch.rand((r, n), generator=rng) < 0.5], []

    return Operation(
        "masked_cumsum",
        lambda x, mask: torch.cumsum(x * mask, -1),
        arguments,
        declared("masked_cumsum", "COLS"),
        {
            "sequential": scan(h.scan_sequential),
            "doubling": scan(h.scan_doubling),
            "blocks of 16": scan(h.scan_blocked),
            "blocks of 1024": scan(lambda x: h.scan_blocked(x, 1024)),
            "wide accumulator": scan(lambda x: torch.cumsum(x.double(), -1).float()),
        },
        {
            "no mask": lambda x, _mask: torch.cumsum(x, -1),
            "exclusive": lambda x, mask: torch.cumsum(x * mask, -1) - x * mask,
        },
        distributions=(*EVERYDAY, "large", "tiny", "positive"),
    )


def cumsum() -> Operation:
    return Operation(
        "cumsum",
        lambda x: torch.cumsum(x, -1),
        rows(),
        lambda _n: problem("cumsum").TOLERANCE,
        {
            "framework": lambda x: torch.cumsum(x, -1),
            "sequential": h.scan_sequential,
            "doubling": h.scan_doubling,
            "blocks of 16": h.scan_blocked,
            "blocks of 1024": lambda x: h.scan_blocked(x, 1024),
            "totals first": h.scan_of_totals,
        },
        {
            "exclusive": lambda x: torch.cumsum(x, -1) - x,
            "backwards": lambda x: torch.cumsum(x.flip(-1), -1).flip(-1),
            "no carry": lambda x: torch.cat(
                [part.cumsum(-1) for part in x.split(max(1, x.shape[-1] // 2), -1)], -1
            ),
        },
        distributions=(*EVERYDAY, "large", "tiny", "positive"),
    )


def total() -> Operation:
    return Operation(
        "sum",
        lambda x: x.sum(-1),
        rows(),
        lambda _n: {"operation": "sum", "dim": -1},
        by_sum(lambda s: lambda x: s(x)[..., 0]),
        {"half": lambda x: 2 * x[..., ::2].sum(-1), "all but one": lambda x: x[..., 1:].sum(-1)},
        distributions=(*EVERYDAY, "large", "positive"),
    )


def mean() -> Operation:
    return Operation(
        "mean",
        lambda x: x.mean(-1),
        rows(),
        lambda _n: {"operation": "mean", "dim": -1},
        {
            **by_sum(lambda s: lambda x: (s(x) / x.shape[-1])[..., 0]),
            "reciprocal": lambda x: (h.lanes(x) * (1 / x.shape[-1]))[..., 0],
            "shares": lambda x: h.sequential(x * (1 / x.shape[-1]))[..., 0],
        },
        {"half": lambda x: x[..., ::2].mean(-1), "over n - 1": lambda x: x.sum(-1) / max(1, x.shape[-1] - 1)},
        distributions=(*EVERYDAY, "large", "positive"),
    )


def logsumexp() -> Operation:
    def online(x: Tensor) -> Tensor:
        top, size = h.online(x)
        return (top + torch.log(size))[..., 0]

    return Operation(
        "logsumexp",
        lambda x: torch.logsumexp(x, -1),
        rows(),
        lambda _n: {"operation": "logsumexp", "dim": -1},
        {
            **by_sum(lambda s: lambda x: h.logsumexp(x, s)[..., 0]),
            "exp2 form": lambda x: h.logsumexp(x, h.lanes, h.exp2_form)[..., 0],
            "online": online,
        },
        {"no maximum": lambda x: x.exp().sum(-1).log(), "maximum": lambda x: x.amax(-1)},
    )


def matmul() -> Operation:
    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((33, n), kind, rng), draw((n, 17), kind, rng)], []

    return Operation(
        "matmul",
        lambda a, b: a @ b,
        arguments,
        lambda _n: {"operation": "matmul"},
        {
            **by_sum(lambda s: lambda a, b: h.product(a, b, s)),
            "split in 4": lambda a, b: h.product(a, b, h.sequential, parts=4),
            "blocks of 64": lambda a, b: h.product(a, b, h.sequential, parts=max(1, a.shape[-1] // 64)),
            "library": lambda a, b: a @ b,
        },
        {
            "half the terms": lambda a, b: a[:, ::2] @ b[::2],
            "one term left out": lambda a, b: a[:, 1:] @ b[1:],
        },
        lengths=(7, 64, 1024, 4096),
        distributions=(*EVERYDAY, "large", "positive"),
        narrow=lambda _n: problem("matmul").TOLERANCE,
    )


def matvec() -> Operation:
    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((33, n), kind, rng), draw((n, 1), kind, rng)], []

    def tiled(size: int) -> Implementation:
        """A matrix in tiles of ``size`` columns; each thread sums one column of them."""

        def compute(a: Tensor, b: Tensor) -> Tensor:
            return h.lanes(a * b.T, size)

        return compute

    return Operation(
        "matvec",
        lambda a, b: a @ b,
        arguments,
        lambda _n: problem("matvec").TOLERANCE,
        {
            **by_sum(lambda s: lambda a, b: s(a * b.T)),
            "tiles of 128": tiled(128),
            "tiles of 1024": tiled(1024),
            "split in 8": lambda a, b: h.product(a, b, h.lanes, parts=8),
            "library": lambda a, b: a @ b,
        },
        {
            "half the terms": lambda a, b: a[:, ::2] @ b[::2],
            "first half": lambda a, b: 2 * a[:, : (a.shape[1] + 1) // 2] @ b[: (b.shape[0] + 1) // 2],
        },
        lengths=(7, 4096, 65536),
        distributions=(*EVERYDAY, "large"),
        narrow=lambda _n: problem("matvec").TOLERANCE,
    )


def conv2d() -> Operation:
    def im2col(total: h.Sum) -> Implementation:
        def compute(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            columns = functional.unfold(x, 3, padding=1)[0].T.contiguous()
            out = h.product(columns, w.flatten(1).T.contiguous(), total).T.reshape(
                1, w.shape[0], *x.shape[2:]
            )
            return out + b[:, None, None]

        return compute

    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((1, n, 9, 10), kind, rng)], [
            draw((8, n, 3, 3), "uniform", rng) / n,
            draw((8,), "uniform", rng),
        ]

    return Operation(
        "conv2d",
        lambda x, w, b: functional.conv2d(x, w, b, padding=1),
        arguments,
        lambda _n: {"operation": "conv2d", "padding": 1},
        {**by_sum(im2col), "library": lambda x, w, b: functional.conv2d(x, w, b, padding=1)},
        {
            "no bias": lambda x, w, _b: functional.conv2d(x, w, padding=1),
            "half the channels": lambda x, w, b: functional.conv2d(x[:, ::2], w[:, ::2], b, padding=1),
        },
        lengths=(3, 64),
        distributions=(*EVERYDAY, "positive"),
    )


def linear_gelu() -> Operation:
    def by_product(total: h.Sum) -> Implementation:
        return lambda x, w, b: functional.gelu(h.product(x, w.T.contiguous(), total) + b)

    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((40, n), kind, rng)], [
            draw((24, n), "uniform", rng) / n**0.5,
            draw((24,), "uniform", rng),
        ]

    return Operation(
        "linear, gelu",
        lambda x, w, b: functional.gelu(functional.linear(x, w, b)),
        arguments,
        None,
        {
            **by_sum(by_product),
            "bias first": lambda x, w, b: functional.gelu(torch.addmm(b, x, w.T)),
            "normal cdf": lambda x, w, b: (
                functional.linear(x, w, b) * torch.special.ndtr(functional.linear(x, w, b))
            ),
        },
        {
            "tanh form": lambda x, w, b: functional.gelu(functional.linear(x, w, b), approximate="tanh"),
            "no bias": lambda x, w, _b: functional.gelu(functional.linear(x, w)),
        },
        lengths=(7, 1024),
        distributions=EVERYDAY,
    )


def attention() -> Operation:
    def plain(total: h.Sum, exp: h.Exp = torch.exp) -> Implementation:
        def compute(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            scores = h.product(q, k.T.contiguous(), total) / q.shape[-1] ** 0.5
            return h.product(h.softmax(scores, total, exp), v, total)

        return compute

    def late_division(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q / q.shape[-1] ** 0.5) @ k.T
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        return (e @ v) / e.sum(-1, keepdim=True)

    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((n, 32), kind, rng) for _ in range(3)], []

    return Operation(
        "attention",
        functional.scaled_dot_product_attention,
        arguments,
        None,
        {**by_sum(plain), "exp2 form": plain(h.lanes, h.exp2_form), "late division": late_division},
        {
            "not scaled": lambda q, k, v: torch.softmax(q @ k.T, -1) @ v,
            "mean of values": lambda q, _k, v: v.mean(0, keepdim=True).expand_as(q),
        },
        lengths=(40, 128),
        distributions=EVERYDAY,
    )
