"""The triplet margin loss."""

import torch
from torch import nn
from torch.nn import functional

rows = 24
width = 130


class Model(nn.Module):
    def forward(self, a, p, n):
        return functional.triplet_margin_loss(a, p, n, margin=1.0)


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, width), torch.randn(rows, width)]


def get_init_inputs():
    return []
