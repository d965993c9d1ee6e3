"""GELU by its tanh form, elementwise, written out as in MinGPT."""

import math

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 256
COLS = 4096
POLICY = "warm"
TOLERANCE = {"operation": "gelu"}


class Model(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale uniform normal spiky large special tiny integers"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 9 * rows * cols, None  # the tanh counted as one
