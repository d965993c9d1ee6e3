"""A dense layer, GELU, softmax."""

import torch
from torch import nn
from torch.nn import functional

batch = 19
wide = 40
out = 21


class Model(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.dense = nn.Linear(wide, out)

    def forward(self, x):
        return torch.softmax(functional.gelu(self.dense(x)), dim=1)


def get_inputs():
    return [torch.randn(batch, wide)]


def get_init_inputs():
    return [wide, out]
