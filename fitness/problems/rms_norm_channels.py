"""Root-mean-square normalisation over the channels of an image, without gain, as in KernelBench."""

from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, shaped

BATCH = 4
CHANNELS = 64
HEIGHT = 48
WIDTH = 48
EPS = 1e-5
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"BATCH": 112, "CHANNELS": 64, "HEIGHT": 512, "WIDTH": 512, "BITS": 16}}
POLICY = "cold"
TOLERANCE = {"operation": "rms_norm", "dim": 1}


class Model(nn.Module):
    def forward(self, x):
        wide = x.float()  # rounded once, at the end
        return (wide / torch.sqrt(wide.pow(2).mean(dim=1, keepdim=True) + EPS)).to(x.dtype)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    prime, other = Random(seed).sample(PRIMES, 2)
    return shaped(
        ("BATCH", "CHANNELS", "HEIGHT", "WIDTH"),
        (BATCH, CHANNELS, HEIGHT, WIDTH),
        visible=[("normal", 2, 3, 4, 5), ("rowscale", 1, 16, 9, 33), ("spiky", 2, 64, 10, 12)],
        held_out=[
            ("normal", 1, 1, 1, 1),
            ("rowscale", 2, 5, prime, other),
            ("uniform", 1, 65, 17, 15),
            ("spiky", 3, 7, 2, 3),
            ("tiny", 2, 64, 16, 16),
            ("normal", 1, 1, 33, 31),
            ("nonfinite", 1, 63, 5, 65),
            ("integers", 4, 2, 8, 8),
            ("large", 1, 129, 7, 9),
            ("special", 2, 11, 1, 130),
            ("rowscale", 1, 257, 3, 11),
            ("tiny", 5, 3, other, 1),
            ("uniform", 1, 64, 1, 1023),
            ("spiky", 7, 31, 4, 4),
        ],
    )


def flops_and_bytes(case):
    batch, channels, height, width = case.inputs[0].shape
    return 3 * batch * channels * height * width, None  # square, add, scale
