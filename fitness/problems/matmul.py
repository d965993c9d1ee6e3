"""Product of two matrices."""

from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, shaped

M = 512
K = 512
N = 512
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"M": 8192, "K": 8192, "N": 8192, "BITS": 16}}
POLICY = "cold"
TOLERANCE = {"operation": "matmul"}


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K, dtype=DTYPE), torch.randn(K, N, dtype=DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    prime, other, third = Random(seed).sample(PRIMES, 3)
    return shaped(
        ("M", "K", "N"),
        (M, K, N),
        visible=[("normal", 3, 17, 5), ("rowscale", 32, 64, 48), ("spiky", 100, 200, 72)],
        held_out=[
            ("normal", 1, 1, 1),
            ("rowscale", prime, other, third),
            ("uniform", 65, 129, 127),
            ("spiky", 7, 3, 2),
            ("normal", 1, 515, 33),
            ("integers", 64, 64, 64),
            ("rowscale", 129, 31, 1),
            ("nonfinite", 17, 40, 66),
            ("tiny", other, 256, prime),
            ("uniform", 16, 2049, 16),
            ("special", 63, 65, 64),
            ("large", 33, third, 130),
            ("normal", 128, 1, 128),
            ("spiky", 5, 1023, 9),
        ],
    )


def flops_and_bytes(case):
    (m, k), (_, n) = case.inputs[0].shape, case.inputs[1].shape
    return 2 * m * k * n, None
