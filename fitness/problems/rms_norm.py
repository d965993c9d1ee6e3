"""Residual add, then root-mean-square normalisation of each row; both results are wanted (Llama)."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 128
COLS = 4096
EPS = 1e-6
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 8192, "BITS": 16}}
POLICY = "warm"


def TOLERANCE(_inputs, _parameters, outputs, u):
    normed, total = outputs
    stored = 2 * 2.0**-8 if BITS == 16 else 0.0  # the norm may be that of the rounded sum
    return [normed.abs() * (u * (17 + COLS**0.5) + stored), 2 * u * total.abs()]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((1 + 0.5 * torch.randn(COLS)).to(DTYPE))

    def forward(self, x, residual):
        total = x.float() + residual.float()
        scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + EPS)
        return (total * scale * self.weight).to(x.dtype), total.to(x.dtype)


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=DTYPE), torch.randn(ROWS, COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale spiky normal uniform large tiny nonfinite integers special"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 5 * rows * cols, None  # add, square, add, scale, gain
