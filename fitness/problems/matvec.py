"""Product of a matrix of few, very long rows and one column, as in KernelBench."""

from random import Random

import torch
from torch import nn

from fitness.cases import LONG_PRIMES, PRIMES, shaped

M = 256
K = 4096
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"M": 2048, "K": 1048576, "BITS": 16}}
POLICY = "cold"
TOLERANCE = {"operation": "matmul"}


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K, dtype=DTYPE), torch.randn(K, 1, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    rng = Random(seed)
    rows, row, long, longer = *rng.sample(PRIMES, 2), *rng.sample(LONG_PRIMES, 2)
    return shaped(
        ("M", "K"),
        (M, K),
        visible=[("normal", 2, 17), ("rowscale", 16, 256), ("spiky", 40, 1000)],
        held_out=[
            ("normal", 1, 1),
            ("rowscale", rows, long),
            ("uniform", 33, 1025),
            ("spiky", 5, 3),
            ("normal", 1, 65537),
            ("integers", 64, 64),
            ("rowscale", 128, 1),
            ("nonfinite", 7, 4095),
            ("tiny", row, longer),
            ("uniform", 2, 20011),
            ("special", 31, 2048),
            ("large", 129, 65),
            ("normal", 3, 8193),
            ("spiky", 17, 127),
        ],
    )


def flops_and_bytes(case):
    m, k = case.inputs[0].shape
    return 2 * m * k, None
