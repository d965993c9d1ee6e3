"""Instance norm of images."""

import torch
from torch import nn

images = 3
channels = 5
side = 11


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(images, channels, side, side)]


def get_init_inputs():
    return [channels]
