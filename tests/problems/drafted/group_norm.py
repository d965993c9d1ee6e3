"""Group norm of images."""

import torch
from torch import nn

images = 3
channels = 12
side = 10


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(images, channels, side, side + 1)]


def get_init_inputs():
    return [channels]
