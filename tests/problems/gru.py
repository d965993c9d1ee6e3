"""A recurrent layer with its first state as an input; two outputs."""

import torch
from torch import nn

steps = 5
batch_size = 3
features = 8
hidden = 16


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gru = nn.GRU(features, hidden)

    def forward(self, x, h0):
        return self.gru(x, h0)


def get_inputs():
    return [torch.randn(steps, batch_size, features), torch.randn(1, batch_size, hidden)]


def get_init_inputs():
    return [features, hidden]
