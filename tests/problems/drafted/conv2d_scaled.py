"""A convolution, ReLU, and a learned shift."""

import torch
from torch import nn

images = 2
channels = 3
side = 20


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 10, 3)
        self.shift = nn.Parameter(torch.randn(10, 1, 1))

    def forward(self, x):
        return torch.relu(self.conv(x)) + self.shift


def get_inputs():
    return [torch.randn(images, channels, side, side)]


def get_init_inputs():
    return [channels]
