# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# A frozen dataclass of settings; an enum; annotations everywhere; postponed evaluation.
from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import NamedTuple, Optional

import torch
import triton
import triton.language as tl


class Mode(enum.IntEnum):
    PLAIN = 0
    LOG = 1


class Extents(NamedTuple):
    rows: int
    columns: int


@dataclass(frozen=True)
class Settings:
    num_warps: int = 4
    num_stages: int = 2


@triton.jit
def softmax_row(x, y, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    if MODE == 1:
        out = v - tl.log(tl.sum(e, axis=0))
    else:
        out = e / tl.sum(e, axis=0)
    tl.store(y + row * n + at, out, mask=at < n)


def kernel_function(x: torch.Tensor, settings: Optional[Settings] = None) -> torch.Tensor:
    extents = Extents(*x.shape)
    settings = settings or Settings()
    y: torch.Tensor = torch.empty_like(x)
    block: int = triton.next_power_of_2(extents.columns)
    softmax_row[(extents.rows,)](x, y, extents.columns, MODE=int(Mode.PLAIN), BLOCK=block, **asdict(settings))
    return y
