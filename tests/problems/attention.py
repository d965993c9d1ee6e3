"""Causal attention with its mask kept as a buffer and float32 islands in a bfloat16 model."""

import math

import torch
from torch import nn

batch = 2
length = 16
width = 32
heads = 4


class Model(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, dtype=torch.bfloat16)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)).float() / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        out = torch.softmax(scores, dim=-1).to(v.dtype) @ v
        return out.transpose(1, 2).reshape(batch, length, width)


def get_inputs():
    return [torch.randn(batch, length, width, dtype=torch.bfloat16)]


def get_init_inputs():
    return [[width, heads], {"longest": length}]
