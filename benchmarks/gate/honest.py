"""Ways in which honest float32 code computes sums, exponentials and the operations built on them.

None of them is exact, and each rounds differently: this is what the gate's bounds must let through.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

Sum = Callable[[Tensor], Tensor]  # over the last dimension, which it keeps
Exp = Callable[[Tensor], Tensor]
LOG2E = 1.4426950408889634


def framework(x: Tensor) -> Tensor:
    return x.sum(-1, keepdim=True)


def sequential(x: Tensor) -> Tensor:
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1, dtype=np.float32)[..., -1:])


def backwards(x: Tensor) -> Tensor:
    return sequential(x.flip(-1))


def lanes(x: Tensor, width: int = 16) -> Tensor:
    """As a vector register sums: ``width`` running sums, added pairwise at the end."""
    padded = torch.nn.functional.pad(x, (0, -x.shape[-1] % width))
    columns = padded.reshape(*x.shape[:-1], -1, width).transpose(-1, -2).contiguous()
    return pairwise(sequential(columns)[..., 0])


def pairwise(x: Tensor) -> Tensor:
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = torch.nn.functional.pad(x, (0, 1))
        x = x[..., 0::2] + x[..., 1::2]
    return x


def kahan(x: Tensor, width: int = 64) -> Tensor:
    """Compensated sums in ``width`` lanes."""
    padded = torch.nn.functional.pad(x, (0, -x.shape[-1] % width))
    return pairwise(_compensated(padded.reshape(*x.shape[:-1], -1, width).transpose(-1, -2))[..., 0])


def _compensated(x: Tensor) -> Tensor:
    total, lost = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for column in x.unbind(-1):
        step = column - lost
        grown = total + step
        lost = (grown - total) - step
        total = grown
    return total[..., None]


ONE_ACCUMULATOR = ("sequential", "backwards")  # drifts where the terms are all of one sign
SUMS: dict[str, Sum] = {
    "framework": framework,
    "sequential": sequential,
    "backwards": backwards,
    "16 lanes": lanes,
    "8 lanes": lambda x: lanes(x, 8),
    "pairwise": pairwise,
    "Kahan": kahan,
}


def exp2_form(x: Tensor) -> Tensor:
    return torch.exp2(x * LOG2E)


def polynomial_exp(x: Tensor) -> Tensor:
    """Range reduction in two steps and a polynomial of degree 6: about two units in the last place."""
    x = x.clamp(-104, 89)  # beyond which the result is 0 or infinite
    k = torch.round(x * LOG2E)
    r = (x - k * 0.693359375) - k * -2.12194440e-4
    p = torch.full_like(r, 1 / 720)
    for factor in (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        p = p * r + factor
    half = torch.floor(k / 2)  # in two steps, since 2^128 is no float32
    return p * torch.exp2(half) * torch.exp2(k - half)


EXPS: dict[str, Exp] = {"exp": torch.exp, "exp2": exp2_form, "polynomial": polynomial_exp}


def softmax(x: Tensor, total: Sum = framework, exp: Exp = torch.exp, *, reciprocal: bool = False) -> Tensor:
    e = exp(x - x.amax(-1, keepdim=True))
    return e * (1 / total(e)) if reciprocal else e / total(e)


def online(x: Tensor, exp: Exp = torch.exp, block: int = 256) -> tuple[Tensor, Tensor]:
    """Maximum and sum of exponentials in one pass, rescaled whenever the maximum grows."""
    top = torch.full_like(x[..., :1], -torch.inf)
    size = torch.zeros_like(top)
    for part in x.split(block, dim=-1):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        size = size * exp(top - higher) + lanes(exp(part - higher))
        top = higher
    return top, size


def logsumexp(x: Tensor, total: Sum = framework, exp: Exp = torch.exp) -> Tensor:
    top = x.amax(-1, keepdim=True)
    return top + torch.log(total(exp(x - top)))


def variance_two_pass(x: Tensor, total: Sum) -> tuple[Tensor, Tensor]:
    mean = total(x) / x.shape[-1]
    return mean, total((x - mean).square()) / x.shape[-1]


def variance_shifted(x: Tensor, total: Sum) -> tuple[Tensor, Tensor]:
    """One pass over x less its first element, which keeps the squares from cancelling."""
    shifted = x - x[..., :1]
    mean = total(shifted) / x.shape[-1]
    return mean + x[..., :1], (total(shifted.square()) / x.shape[-1] - mean.square()).clamp_min(0)


def variance_merged(x: Tensor, total: Sum, block: int = 128) -> tuple[Tensor, Tensor]:
    """Blocks of their own mean and variance, merged by Chan's formula."""
    count = 0
    mean, squares = torch.zeros_like(x[..., :1]), torch.zeros_like(x[..., :1])
    for part in x.split(block, dim=-1):
        n = part.shape[-1]
        part_mean, part_var = variance_two_pass(part, total)
        delta = part_mean - mean
        count += n
        mean = mean + delta * (n / count)
        squares = squares + part_var * n + delta.square() * ((count - n) * n / count)
    return mean, squares / count


def gelu_argument(x: Tensor) -> Tensor:
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


def scan_blocked(x: Tensor, block: int = 16) -> Tensor:
    """Prefix sums within blocks, and a running carry."""
    carry, parts = torch.zeros_like(x[..., :1]), []
    for part in x.split(block, dim=-1):
        parts.append(scan_doubling(part) + carry)
        carry = parts[-1][..., -1:]
    return torch.cat(parts, dim=-1)


def scan_doubling(x: Tensor) -> Tensor:
    step = 1
    while step < x.shape[-1]:
        x = torch.cat((x[..., :step], x[..., step:] + x[..., :-step]), dim=-1)
        step *= 2
    return x


def scan_of_totals(x: Tensor, block: int = 256) -> Tensor:
    """As two launches do it: totals of blocks and their prefix sums first, then every block by itself."""
    parts = x.split(block, dim=-1)
    before = torch.zeros_like(x[..., :1])
    carries = []
    for part in parts:
        carries.append(before)
        before = before + pairwise(part)
    return torch.cat([scan_doubling(p) + c for p, c in zip(parts, carries, strict=True)], dim=-1)


def scan_sequential(x: Tensor) -> Tensor:
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1, dtype=np.float32))


def product(a: Tensor, b: Tensor, total: Sum, parts: int = 1) -> Tensor:
    """Matrix product whose every element is summed by ``total``, in as many parts as asked."""
    terms = a[:, None, :] * b.T[None, :, :].contiguous()
    return pairwise(torch.cat([total(part) for part in terms.chunk(parts, dim=-1)], dim=-1))[..., 0]


def windows(x: Tensor, size: int) -> Tensor:
    """All size × size windows of the two last dimensions, flattened."""
    return x.unfold(-2, size, 1).unfold(-2, size, 1).flatten(-2)


def fused(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a·b + c with one rounding."""
    return (a.double() * b.double() + c.double()).float()
