"""A convolution along time with a sigmoid."""

import torch
from torch import nn

batch = 3
channels = 4
length = 50


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, 6, 5, stride=2, padding=3)

    def forward(self, x):
        return torch.sigmoid(self.conv(x))


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels]
