"""One filter a channel, then a product over channels."""

import torch
from torch import nn

images = 2
channels = 7
side = 13


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.each = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.across = nn.Conv2d(channels, 11, 1)

    def forward(self, x):
        return self.across(self.each(x))


def get_inputs():
    return [torch.randn(images, channels, side, side)]


def get_init_inputs():
    return [channels]
