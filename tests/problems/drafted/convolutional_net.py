"""A small net of images: convolution, pooling, dense."""

import torch
from torch import nn
from torch.nn import functional

images = 5
side = 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.dense = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = functional.max_pool2d(torch.relu(self.second(x)), 2)
        return self.dense(x.flatten(1))


def get_inputs():
    return [torch.randn(images, 3, 16, 16)]


def get_init_inputs():
    return []
