"""Depthwise 3x3 convolution without padding or bias: nine products a point, one filter a channel."""

from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, case

BATCH = 1
CHANNELS = 32
HEIGHT = 176
WIDTH = 176
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"BATCH": 16, "CHANNELS": 64, "HEIGHT": 512, "WIDTH": 512, "BITS": 16}}
POLICY = "warm"
TOLERANCE = {"operation": "conv2d", "groups": CHANNELS}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, groups=CHANNELS, bias=False, dtype=DTYPE)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    rng = Random(seed)
    prime, other = rng.sample(PRIMES, 2)

    def shaped(distribution, batch, channels, height, width, held_out=True):
        constants = {"BATCH": batch, "CHANNELS": channels, "HEIGHT": height, "WIDTH": width}
        return case(constants, distribution, held_out=held_out, timed=distribution is None)

    return [
        shaped(None, BATCH, CHANNELS, HEIGHT, WIDTH, held_out=False),
        shaped("normal", 1, 2, 5, 6, held_out=False),
        shaped("rowscale", 2, 3, 8, 16, held_out=False),
        shaped("spiky", 1, 16, 34, 35, held_out=False),
        shaped("normal", 1, 1, 3, 3),
        shaped("nonfinite", 2, 5, prime, other),
        shaped("uniform", 1, 7, 17, 67),
        shaped("spiky", 3, 2, 4, 9),
        shaped("normal", 1, 33, 15, 18),
        shaped("rowscale", 2, 8, other, 5),
        shaped("tiny", 1, 3, 33, 130),
        shaped("integers", 4, 4, 19, 23),
        shaped("special", 1, 11, 3, 66),
        shaped("uniform", 5, 1, 7, 258),
        shaped("large", 1, 64, 10, 10),
        shaped("normal", 1, 2, 131, 3),
        shaped("spiky", 2, 31, 12, 65),
    ]


def flops_and_bytes(case):
    batch, channels, height, width = case.outputs[0].shape
    return 18 * batch * channels * height * width, None  # nine multiply-adds a point
