"""Root-mean-square normalisation of each row, with gain, as between the blocks of Llama."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 128
COLS = 4096
EPS = 1e-6
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 4096, "BITS": 16}}
POLICY = "cold"
TOLERANCE = {"operation": "rms_norm", "dim": -1}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((1 + 0.5 * torch.randn(COLS)).to(DTYPE))

    def forward(self, x):
        return nn.functional.rms_norm(x, (COLS,), self.weight, EPS)


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale spiky normal uniform large tiny nonfinite integers special"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 4 * rows * cols, None  # square, add, scale, gain
