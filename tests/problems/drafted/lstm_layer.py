"""A recurrent layer with gates."""

import torch
from torch import nn

steps = 4
batch = 3
wide = 6
hidden = 8


class Model(nn.Module):
    def __init__(self, wide, hidden):
        super().__init__()
        self.layer = nn.LSTM(wide, hidden, batch_first=True)

    def forward(self, x):
        out, (_, c) = self.layer(x)
        return out, c


def get_inputs():
    return [torch.randn(batch, steps, wide)]


def get_init_inputs():
    return [wide, hidden]
