"""The hinge loss of signs."""

import torch
from torch import nn

rows = 64
width = 20


class Model(nn.Module):
    def forward(self, guess, truth):
        return torch.mean(torch.clamp(1 - guess * truth, min=0))


def get_inputs():
    return [torch.randn(rows, width), torch.randint(0, 2, (rows, width)).float() * 2 - 1]


def get_init_inputs():
    return []
