"""Rotary position embedding of queries, in the two-halves layout of Hugging Face's Llama."""

from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, case

BATCH = 1
HEADS = 24
LENGTH = 256
DIM = 128
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"BATCH": 1, "HEADS": 32, "LENGTH": 8192, "DIM": 128, "BITS": 16}}
POLICY = "warm"


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def TOLERANCE(inputs, _parameters, _outputs, u):
    x, cos, sin = inputs  # a dot product of length two
    return [u * (8 + 2**0.5) * ((x * cos).abs() + (rotate_half(x) * sin).abs())]


class Model(nn.Module):
    def forward(self, x, cos, sin):
        wide = x.float()  # rounded once, at the end
        return (wide * cos + rotate_half(wide) * sin).to(x.dtype)


def get_inputs():
    frequency = 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
    angle = torch.outer(torch.arange(LENGTH).float(), frequency).repeat(1, 2)
    x = torch.randn(BATCH, HEADS, LENGTH, DIM, dtype=DTYPE)
    return [x, angle.cos().to(DTYPE), angle.sin().to(DTYPE)]


def get_init_inputs():
    return []


def get_cases(seed):
    rng = Random(seed)
    prime, other = rng.sample(PRIMES, 2)

    def shaped(distribution, batch, heads, length, dim, held_out=True, timed=False):
        constants = {"BATCH": batch, "HEADS": heads, "LENGTH": length, "DIM": dim}
        return case(constants, distribution, held_out=held_out, timed=timed)

    return [
        shaped(None, BATCH, HEADS, LENGTH, DIM, held_out=False, timed=True),
        shaped(None, 1, 2, 3, 8, held_out=False),
        shaped("normal", 2, 3, 5, 32, held_out=False),
        shaped("rowscale", 1, 8, 33, 64, held_out=False),
        shaped("normal", 1, 1, 1, 2),
        shaped("nonfinite", 2, 3, prime, 2 * other),
        shaped("spiky", 1, 5, 17, 130),
        shaped("uniform", 3, 1, 7, 6),
        shaped(None, 1, 32, 31, 128),
        shaped("rowscale", 2, 8, 64, 126),
        shaped("tiny", 1, 3, other, 34),
        shaped("special", 5, 2, 9, 62),
        shaped("integers", 1, 7, 13, 256),
        shaped("spiky", 4, 1, 65, 66),
        shaped(None, 2, 2, 2, 1026),
        shaped("uniform", 7, 11, 1, 64),
        shaped("normal", 1, 1, 1023, 14),
    ]


def flops_and_bytes(case):
    batch, heads, length, dim = case.inputs[0].shape
    return 3 * batch * heads * length * dim, None  # two products and a sum
