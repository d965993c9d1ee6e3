"""A weighted sum of experts, the weights a softmax."""

import torch
from torch import nn

batch = 10
wide = 16
experts = 4


class Model(nn.Module):
    def __init__(self, wide, experts):
        super().__init__()
        self.gate = nn.Linear(wide, experts)
        self.experts = nn.Parameter(torch.randn(experts, wide, wide))

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=-1)
        each = torch.einsum("bi,eio->beo", x, self.experts)
        return (weights.unsqueeze(-1) * each).sum(dim=1)


def get_inputs():
    return [torch.randn(batch, wide)]


def get_init_inputs():
    return [wide, experts]
