"""A matrix times a vector, and an outer product beside it."""

import torch
from torch import nn

m = 45
n = 33


class Model(nn.Module):
    def forward(self, a, v):
        y = a @ v
        return torch.outer(y, v)


def get_inputs():
    return [torch.randn(m, n), torch.randn(n)]


def get_init_inputs():
    return []
