"""Product of two lower triangular matrices, whose upper halves a kernel may skip."""

import torch
from torch import nn

N = 64


class Model(nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))


def get_inputs():
    return [torch.tril(torch.rand(N, N)), torch.tril(torch.rand(N, N))]


def get_init_inputs():
    return []
