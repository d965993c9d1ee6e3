"""SwiGLU: the SiLU of one half of each row times the other half, as in Llama's feed-forward block."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 40
COLS = 14336
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 14336, "BITS": 16}}
POLICY = "warm"


def TOLERANCE(inputs, _parameters, outputs, u):
    gate, up = inputs[0].chunk(2, dim=-1)
    lost = (gate * up).abs() * torch.finfo(torch.float32).tiny  # where exp(-gate) overflows
    return [u * outputs[0].abs() * (10 + 4 * gate.abs()) + lost]  # a sigmoid and two products


class Model(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        return (nn.functional.silu(gate.float()) * up).to(x.dtype)  # rounded once


def get_inputs():
    return [torch.randn(ROWS, 2 * COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale uniform normal spiky large special tiny integers"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.outputs[0].shape
    return 5 * rows * cols, None  # negate, exp, add, divide, multiply
