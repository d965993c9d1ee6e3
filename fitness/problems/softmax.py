"""Softmax over each row of a matrix, as in attention scores."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 256
COLS = 4096
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 8192, "BITS": 16}}
POLICY = "warm"
TOLERANCE = {"operation": "softmax", "dim": -1}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "spiky tiny large normal nonfinite uniform rowscale ties special normal"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 5 * rows * cols, None  # max, subtract, exp, add, scale
