"""Running sum along each row of the elements that a mask lets through."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 192
COLS = 4096
SIZES = {"cuda": {"ROWS": 32768, "COLS": 32768}}
POLICY = "warm"


def TOLERANCE(inputs, _parameters, _outputs, u):
    x, mask = inputs
    position = torch.arange(1, COLS + 1, dtype=x.dtype, device=x.device)
    return [u * (8 + position.sqrt()) * torch.cumsum((x * mask).abs(), dim=-1)]


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.cumsum(x * mask, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.rand(ROWS, COLS) < 0.5]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale integers normal spiky large uniform tiny special"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 2 * rows * cols, None  # multiply by the mask, add
