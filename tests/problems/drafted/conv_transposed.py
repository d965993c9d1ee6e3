"""A transposed convolution with groups."""

import torch
from torch import nn

images = 2
channels = 4
side = 6


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, 6, 3, stride=2, padding=1, output_padding=1, groups=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(images, channels, side, side + 2)]


def get_init_inputs():
    return [channels]
