"""The lower triangle, and the diagonal."""

import torch
from torch import nn

n = 20


class Model(nn.Module):
    def forward(self, x):
        return torch.tril(x) @ torch.triu(x, 1), torch.diagonal(x)


def get_inputs():
    return [torch.randn(n, n)]


def get_init_inputs():
    return []
