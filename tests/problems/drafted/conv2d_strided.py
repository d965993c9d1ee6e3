"""A convolution with padding, stride, dilation and groups."""

import torch
from torch import nn

images = 2
channels = 6
height = 15
width = 19


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 8, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(images, channels, height, width)]


def get_init_inputs():
    return [channels]
