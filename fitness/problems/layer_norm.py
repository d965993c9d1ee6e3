"""Layer normalisation over each row, with gain and bias."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

ROWS = 256
COLS = 4096
EPS = 1e-5
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"ROWS": 8192, "COLS": 12288, "BITS": 16}}
POLICY = "warm"
TOLERANCE = {"operation": "layer_norm", "dim": -1, "eps": EPS}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(COLS, eps=EPS, dtype=DTYPE)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.5)  # ones and zeros would hide a kernel
        nn.init.normal_(self.norm.bias, std=0.5)  # that ignores them

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "normal rowscale spiky normal nonfinite uniform rowscale tiny ties large"
    return rows_by_columns(seed, ("ROWS", "COLS"), (ROWS, COLS), distributions)


def flops_and_bytes(case):
    rows, cols = case.inputs[0].shape
    return 8 * rows * cols, None  # sum, subtract, square, add, subtract, scale, gain, bias
