"""GELU by its tanh form, elementwise, written out as in MinGPT."""

import math

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 256
COLS = 4096
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 8192, "BITS": 16}}
POLICY = "warm"
TOLERANCE = {"operation": "gelu"}


class Model(nn.Module):
    def forward(self, x):
        wide = x.float()  # rounded once, at the end
        inner = math.sqrt(2.0 / math.pi) * (wide + 0.044715 * torch.pow(wide, 3.0))
        return (0.5 * wide * (1.0 + torch.tanh(inner))).to(x.dtype)


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale uniform normal spiky large special tiny integers"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 9 * rows * cols, None  # the tanh counted as one
