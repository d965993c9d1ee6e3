"""Softmax over rows too long for one block of a GPU, as in KernelBench."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 16
COLS = 98304
SIZES = {"cuda": {"ROWS": 4096, "COLS": 393216}}
POLICY = "cold"
TOLERANCE = {"operation": "softmax", "dim": -1}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "spiky tiny large normal nonfinite uniform rowscale ties special normal"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 5 * rows * cols, None  # max, subtract, exp, add, scale
