"""A strided convolution with a bias and a ReLU."""

import torch
import torch.nn as nn

batch_size = 2
in_channels = 3
out_channels = 8
kernel_size = 3
stride = 2
height = width = 32


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride]
