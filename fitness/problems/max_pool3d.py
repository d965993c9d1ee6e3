"""Maximum over 3x3x3 points of a volume, stride 2, padding 1, dilation 3, as in KernelBench."""

from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, shaped

BATCH = 2
CHANNELS = 8
DEPTH = 32
HEIGHT = 32
WIDTH = 32
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"BATCH": 16, "CHANNELS": 32, "DEPTH": 128, "HEIGHT": 128, "WIDTH": 128, "BITS": 16}}
POLICY = "cold"
TOLERANCE = {"operation": "max"}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool3d(3, stride=2, padding=1, dilation=3)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, HEIGHT, WIDTH, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    prime, other = Random(seed).sample([p for p in PRIMES if p < 60], 2)
    return shaped(  # no extent below 5: there would be no output
        ("BATCH", "CHANNELS", "DEPTH", "HEIGHT", "WIDTH"),
        (BATCH, CHANNELS, DEPTH, HEIGHT, WIDTH),
        visible=[("normal", 1, 2, 6, 7, 8), ("ties", 2, 3, 9, 8, 17), ("rowscale", 1, 4, 12, 15, 30)],
        held_out=[
            ("normal", 1, 1, 5, 5, 5),
            ("rowscale", 1, 3, 7, prime, other),
            ("nonfinite", 2, 2, 9, 17, 33),
            ("ties", 3, 1, 5, 6, 7),
            ("integers", 1, 7, 8, 8, 8),
            ("spiky", 2, 1, 16, 5, 65),
            ("tiny", 1, 5, 11, 13, 10),
            ("special", 1, 2, 6, 31, 34),
            ("large", 4, 1, 5, 10, 127),
            ("uniform", 1, 1, 33, 7, 6),
            ("ties", 5, 2, 7, 7, 5),
            ("nonfinite", 1, 11, 5, 5, 9),
            ("normal", 1, 1, 5, 5, 513),
            ("rowscale", 2, 3, prime, 6, 8),
        ],
    )


def flops_and_bytes(case):
    batch, channels, depth, height, width = case.outputs[0].shape
    return 27 * batch * channels * depth * height * width, None
