"""Values brought to eight bits, and their scale."""

import torch
from torch import nn

rows = 12
width = 50


class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(dim=1, keepdim=True) / 127
        return torch.round(x / scale).clamp(-128, 127).to(torch.int8), scale


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
