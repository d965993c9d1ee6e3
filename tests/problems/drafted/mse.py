"""The mean squared error."""

import torch
from torch import nn

rows = 24
width = 130


class Model(nn.Module):
    def forward(self, guess, truth):
        return torch.mean((guess - truth) ** 2)


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, width)]


def get_init_inputs():
    return []
