"""Transposed 3x3x3 convolution, stride 2, padding 1, dilation 2: most results are zero (KernelBench)."""

import math
from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, shaped

BATCH = 1
CHANNELS = 8
FILTERS = 16
DEPTH = 8
HEIGHT = 12
WIDTH = 12
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {
    "cuda": {"BATCH": 16, "CHANNELS": 32, "FILTERS": 64, "DEPTH": 16, "HEIGHT": 32, "WIDTH": 32, "BITS": 16}
}
POLICY = "cold"
GEOMETRY = {"stride": 2, "padding": 1, "dilation": 2}
TOLERANCE = {"operation": "conv_transpose3d", **GEOMETRY}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose3d(CHANNELS, FILTERS, 3, **GEOMETRY, bias=False, dtype=DTYPE)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, HEIGHT, WIDTH, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    prime, other = Random(seed).sample([p for p in PRIMES if p < 60], 2)
    return shaped(
        ("BATCH", "CHANNELS", "FILTERS", "DEPTH", "HEIGHT", "WIDTH"),
        (BATCH, CHANNELS, FILTERS, DEPTH, HEIGHT, WIDTH),
        visible=[("normal", 1, 2, 3, 3, 4, 5), ("rowscale", 2, 3, 8, 4, 3, 9), ("spiky", 1, 16, 16, 4, 6, 7)],
        held_out=[
            ("normal", 1, 1, 1, 1, 1, 1),
            ("rowscale", 1, 3, 5, 2, prime, other),
            ("uniform", 1, 33, 17, 3, 5, 7),
            ("spiky", 3, 2, 3, 2, 2, 3),
            ("nonfinite", 2, 5, 4, 3, 9, 8),
            ("integers", 1, 8, 8, 4, 8, 4),
            ("tiny", 2, 1, 31, 1, 3, 17),
            ("large", 1, 7, 2, 5, 1, 33),
            ("special", 1, 4, 9, 2, 15, 6),
            ("rowscale", 4, 2, 1, 1, 1, 65),
            ("uniform", 1, 65, 3, 2, 3, 4),
            ("normal", 1, 1, 64, 3, 3, 3),
            ("spiky", 1, 31, 33, 2, 4, 4),
            ("normal", 2, 3, 2, 7, 2, other),
        ],
    )


def flops_and_bytes(case):
    values, filters = math.prod(case.inputs[0].shape), case.outputs[0].shape[1]
    return 2 * 27 * values * filters, None
