"""Residual add, then root-mean-square normalisation of each row; both results are wanted (Llama)."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 128
COLS = 4096
EPS = 1e-6
POLICY = "warm"


def TOLERANCE(_inputs, _parameters, outputs, u):
    normed, total = outputs
    return [normed.abs() * u * (17 + COLS**0.5), 2 * u * total.abs()]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.5 * torch.randn(COLS))

    def forward(self, x, residual):
        total = x + residual
        scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + EPS)
        return total * scale * self.weight, total


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale spiky normal uniform large tiny nonfinite integers special"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 5 * rows * cols, None  # add, square, add, scale, gain
