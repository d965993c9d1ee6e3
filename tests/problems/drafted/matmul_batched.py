"""A product for each image, broadcast over heads."""

import torch
from torch import nn

images = 3
heads = 2
length = 20
width = 12


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b.transpose(-1, -2))


def get_inputs():
    return [torch.randn(images, heads, length, width), torch.randn(images, 1, 9, width)]


def get_init_inputs():
    return []
