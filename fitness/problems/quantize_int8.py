"""Symmetric int8 quantisation with one scale a row, rounding half to even."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 256
COLS = 4096
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 8192, "BITS": 16}}
POLICY = "warm"


def TOLERANCE(inputs, _parameters, _outputs, u):
    """An element may differ by one where its quotient lies within rounding of a tie."""
    scale = row_scale(inputs[0])
    quotient = inputs[0] / scale
    lost = 2.0**-149 / scale  # a subnormal scale is itself rounded to multiples of 2^-149
    to_tie = 0.5 - (quotient - quotient.round()).abs()
    near = to_tie <= quotient.abs() * (4 * u + lost)
    return [near.to(scale.dtype), 4 * u * scale + 2.0**-149]


class Model(nn.Module):
    def forward(self, x):
        scale = row_scale(x.float())  # scales are float32 whatever the input
        return torch.round(x / scale).clamp(-127, 127).to(torch.int8), scale


def row_scale(x):
    largest = x.abs().amax(dim=-1, keepdim=True)
    return torch.where(largest > 0, largest / 127, torch.ones_like(largest))


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale spiky normal uniform tiny integers large ties special"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 4 * rows * cols, None  # absolute value, maximum, divide, round
