"""Running sum along each row."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 192
COLS = 4096
SIZES = {"cuda": {"ROWS": 32768, "COLS": 32768}}
POLICY = "cold"
TOLERANCE = {"operation": "cumsum", "dim": -1}


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale integers nonfinite spiky large uniform tiny special"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return rows * cols, None
