"""Two matrices of unequal sides."""

import torch
from torch import nn

m = 37
n = 50
k = 70


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
