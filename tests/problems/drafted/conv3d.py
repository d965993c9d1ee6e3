"""A convolution of volumes."""

import torch
from torch import nn

images = 2
channels = 3
side = 7


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv3d(channels, 4, 3, padding=1)

    def forward(self, x):
        return torch.tanh(self.conv(x))


def get_inputs():
    return [torch.randn(images, channels, side, side, side + 1)]


def get_init_inputs():
    return [channels]
