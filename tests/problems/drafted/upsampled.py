"""Each element four times, and a brightening."""

import torch
from torch import nn
from torch.nn import functional

images = 2
channels = 3
side = 8


class Model(nn.Module):
    def forward(self, x):
        return functional.interpolate(x, scale_factor=2, mode="nearest") * 1.5


def get_inputs():
    return [torch.randn(images, channels, side, side)]


def get_init_inputs():
    return []
