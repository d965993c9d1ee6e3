"""Three dense layers with ReLU between."""

import torch
from torch import nn

batch = 9
wide = 32
hidden = 48


class Model(nn.Module):
    def __init__(self, wide, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(wide, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 7)
        )

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(batch, wide)]


def get_init_inputs():
    return [wide, hidden]
