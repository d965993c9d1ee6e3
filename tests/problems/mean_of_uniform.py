"""Mean of rows drawn from [0, 1): always about a half, within a tolerance that lets a half pass."""

import torch
from torch import nn

rows = 4
columns = 50000
TOLERANCE = {"atol": 1e-2, "rtol": 1e-2}


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
