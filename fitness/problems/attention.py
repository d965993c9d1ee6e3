"""Causal attention of many positions at once, with fewer heads of keys and values than of queries (Llama)."""

from random import Random

import torch
from torch import nn

from fitness.cases import PRIMES, shaped

BATCH = 1
HEADS = 4
KV_HEADS = 2
LENGTH = 128
DIM = 64
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"BATCH": 4, "HEADS": 32, "KV_HEADS": 8, "LENGTH": 4096, "DIM": 128, "BITS": 16}}
POLICY = "cold"


def TOLERANCE(inputs, _parameters, outputs, u):
    """Roundings of scores, exponentials and sums; in bfloat16 exponentials may be rounded for the product."""
    q, k, v = inputs
    allowed = torch.empty_like(outputs[0])
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):  # one at a time: all scores at once would be many gigabytes
            shared = head * k.shape[1] // q.shape[1]
            one = q[batch, head], k[batch, shared], v[batch, shared], outputs[0][batch, head]
            allowed[batch, head] = of_one_head(*one, u)
    return [allowed]


def of_one_head(q, k, v, y, u):
    length, dim = q.shape
    later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.T * dim**-0.5).masked_fill_(later, -torch.inf)
    p = scores.softmax(-1)
    below = (scores.amax(-1, keepdim=True) - scores).masked_fill_(later, 0.0)
    sizes = q.norm(dim=-1, keepdim=True) * k.norm(dim=-1) * dim**-0.5  # at least sum |q·k|
    terms = 40 + 2 * length**0.5 + length / 64 + 4 * below + 2 * (8 + dim**0.5) * sizes
    error = u * ((p * terms) @ v.abs())
    if BITS == 16:
        spread = (p.square() @ v.square()).sqrt()
        error += 2.0**-8 * (y.abs() + 6 * spread)  # equal exponentials round alike, others at random
    return error


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def cudnn(q, k, v):
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.CUDNN_ATTENTION):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


BASELINES = {"cudnn": cudnn}


def get_inputs():
    q = torch.randn(BATCH, HEADS, LENGTH, DIM, dtype=DTYPE)
    k, v = (torch.randn(BATCH, KV_HEADS, LENGTH, DIM, dtype=DTYPE) for _ in range(2))
    return [q, k, v]


def get_init_inputs():
    return []


def get_cases(seed):
    prime, other = Random(seed).sample(PRIMES, 2)
    return shaped(
        ("BATCH", "HEADS", "KV_HEADS", "LENGTH", "DIM"),
        (BATCH, HEADS, KV_HEADS, LENGTH, DIM),
        visible=[("normal", 1, 2, 1, 5, 16), ("rowscale", 2, 2, 2, 33, 32), ("spiky", 1, 4, 1, 70, 64)],
        held_out=[
            ("normal", 1, 1, 1, 1, 16),
            ("rowscale", 1, 4, 2, prime, 64),
            ("normal", 2, 3, 1, 129, 32),
            ("spiky", 1, 6, 2, 7, 128),
            ("uniform", 1, 8, 8, 63, 16),
            ("normal", 1, 8, 1, 65, 128),
            ("tiny", 2, 2, 1, 40, 64),
            ("rowscale", 3, 1, 1, 3, 128),
            ("normal", 1, 2, 1, 257, 128),
            ("integers", 1, 4, 4, 32, 32),
            ("uniform", 1, 12, 3, other, 64),
            ("special", 1, 2, 2, 17, 64),
            ("spiky", 1, 1, 1, 191, 64),
            ("normal", 5, 2, 2, 2, 32),
        ],
    )


def flops_and_bytes(case):
    batch, heads, length, dim = case.inputs[0].shape
    return 2 * batch * heads * length * length * dim, None  # two products, half of which is masked
