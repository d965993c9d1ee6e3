"""Images and volumes: pooling, transposed convolution, and a norm over channels."""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from benchmarks.gate import honest as h
from benchmarks.gate.operation import EVERYDAY, Arguments, Implementation, Operation, by_sum, draw, problem

GEOMETRY = {"stride": 2, "padding": 1, "dilation": 2}


def conv_transpose3d() -> Operation:
    def library(x: Tensor, w: Tensor) -> Tensor:
        return functional.conv_transpose3d(x, w, **GEOMETRY)

    def gathered(total: h.Sum) -> Implementation:
        """A convolution of the input with zeros between its points, all taps of an output in one sum."""

        def compute(x: Tensor, w: Tensor) -> Tensor:
            spread = x.new_zeros(*x.shape[:2], *(2 * n - 1 for n in x.shape[2:]))
            spread[..., ::2, ::2, ::2] = x
            padded = functional.pad(spread, [3] * 6)  # (k - 1)·d - p
            for dim in (2, 3, 4):
                padded = padded.unfold(dim, 5, 1)
            terms = padded[0, ..., ::2, ::2, ::2].movedim(0, 3).flatten(3)
            taps = w.flip(2, 3, 4).transpose(0, 1).flatten(1)
            return h.product(terms.flatten(0, 2), taps.T, total).T.reshape(1, -1, *terms.shape[:3])

        return compute

    def by_tap(x: Tensor, w: Tensor) -> Tensor:
        """Every tap's product over channels, added where it belongs: only odd points get any."""
        out = torch.zeros_like(library(x, w))
        depth, height, width = x.shape[2:]
        for i, j, k in torch.cartesian_prod(*[torch.arange(3)] * 3).tolist():
            part = torch.einsum("bcdhw,cf->bfdhw", x, w[..., i, j, k])
            where = []
            for tap, extent, size in zip((i, j, k), (depth, height, width), out.shape[2:], strict=True):
                points = 2 * torch.arange(extent) + 2 * tap - 1
                where.append((points, (points >= 0) & (points < size)))
            (d, in_d), (e, in_e), (f, in_f) = where
            kept = part[:, :, in_d][:, :, :, in_e][:, :, :, :, in_f]
            out[:, :, d[in_d][:, None, None], e[in_e][:, None], f[in_f]] += kept
        return out

    def arguments(n: int, _r: int, kind: str, rng: Generator) -> tuple[Arguments, Arguments]:
        return [draw((1, n, 3, 4, 5), kind, rng)], [draw((n, 6, 3, 3, 3), "uniform", rng) / n**0.5]

    return Operation(
        "conv_transpose3d",
        library,
        arguments,
        lambda _n: problem("conv_transpose3d").TOLERANCE,
        {**by_sum(gathered), "library": library, "tap by tap": by_tap},
        {
            "flipped": lambda x, w: library(x, w.flip(-1)),
            "half the channels": lambda x, w: library(x[:, ::2], w[::2]),
            "a tap left out": lambda x, w: library(x, w.index_fill(4, torch.tensor([1]), 0.0)),
        },
        lengths=(3, 32),
        distributions=(*EVERYDAY, "large"),
        narrow=lambda _n: problem("conv_transpose3d").TOLERANCE,
    )


def max_pool3d() -> Operation:
    geometry = {"stride": 2, "padding": 1, "dilation": 3}

    def library(x: Tensor) -> Tensor:
        return functional.max_pool3d(x, 3, **geometry)

    def windows(x: Tensor, border: float = -torch.inf) -> Tensor:
        padded = functional.pad(x, [1] * 6, value=border)
        for dim in (2, 3, 4):
            padded = padded.unfold(dim, 7, 2)
        return padded[..., ::3, ::3, ::3].flatten(5)

    def by_dimension(x: Tensor) -> Tensor:
        padded = functional.pad(x, [1] * 6, value=-torch.inf)
        for dim in (2, 3, 4):
            padded = padded.unfold(dim, 7, 2)[..., ::3].amax(-1)
        return padded

    def running(x: Tensor) -> Tensor:
        first, *others = windows(x).unbind(-1)
        for other in others:
            first = torch.where(other > first, other, first)
        return first

    return Operation(
        "max_pool3d",
        library,
        lambda n, _r, kind, rng: ([draw((2, 3, n, n + 1, n + 3), kind, rng)], []),
        lambda _n: problem("max_pool3d").TOLERANCE,
        {
            "library": library,
            "windows": lambda x: windows(x).amax(-1),
            "by dimension": by_dimension,
            "running": running,
            "largest negated": lambda x: -((-windows(x)).amin(-1)),
            "sorted": lambda x: windows(x).sort(-1).values[..., -1],
        },
        {
            "padded with zeros": lambda x: windows(x, 0.0).amax(-1),
            "a tap left out": lambda x: windows(x)[..., 1:].amax(-1),
            "the middle": lambda x: windows(x)[..., 13],
        },
        lengths=(5, 16),
        distributions=(*EVERYDAY, "ties", "large"),
        narrow=lambda _n: problem("max_pool3d").TOLERANCE,
    )


def rms_norm_channels() -> Operation:
    def norm(total: h.Sum, form: str = "division", eps: float = 1e-5) -> Implementation:
        def compute(x: Tensor) -> Tensor:
            last = x.movedim(1, -1).contiguous()
            mean = total(last.square()) / last.shape[-1] + eps
            by_form = {
                "division": lambda: last / mean.sqrt(),
                "scale": lambda: last * torch.rsqrt(mean),
                "reciprocal": lambda: last * (1 / mean.sqrt()),
            }
            return by_form[form]().movedim(-1, 1)

        return compute

    return Operation(
        "rms_norm_channels",
        lambda x: x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5),
        lambda n, _r, kind, rng: ([draw((2, n, 5, 7), kind, rng)], []),
        lambda _n: problem("rms_norm_channels").TOLERANCE,
        {
            **by_sum(norm),
            "scale": norm(h.lanes, "scale"),
            "reciprocal": norm(h.pairwise, "reciprocal"),
        },
        {
            "no eps": norm(h.framework, eps=0.0),
            "over the width": lambda x: x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5),
            "half the channels": lambda x: x / torch.sqrt(x[:, ::2].pow(2).mean(1, keepdim=True) + 1e-5),
        },
        lengths=(7, 64, 1024),
        narrow=lambda _n: problem("rms_norm_channels").TOLERANCE,
    )
