"""Scaled dot products of queries, keys and values."""

import torch
from torch import nn
from torch.nn import functional

batch = 2
heads = 3
length = 14
width = 8


class Model(nn.Module):
    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [
        torch.randn(batch, heads, length, width),
        torch.randn(batch, heads, length, width),
        torch.randn(batch, heads, length, width),
    ]


def get_init_inputs():
    return []
