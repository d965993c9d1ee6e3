"""Sums and means over several dimensions."""

import torch
from torch import nn

a = 5
b = 33
c = 18


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1), x.mean(dim=(0, 2)), x.prod(dim=2)


def get_inputs():
    return [torch.rand(a, b, c) + 0.5]


def get_init_inputs():
    return []
