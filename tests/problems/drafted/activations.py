"""Several activations, one after the other."""

import torch
from torch import nn
from torch.nn import functional

rows = 24
width = 130


class Model(nn.Module):
    def forward(self, x):
        x = functional.elu(x, 0.7) + functional.selu(x) - functional.hardtanh(x, -0.5, 1.5)
        x = functional.leaky_relu(x, 0.1) + functional.softplus(x, 2.0) * functional.hardswish(x)
        return functional.mish(x) + functional.hardsigmoid(x) + functional.softsign(x)


def get_inputs():
    return [torch.randn(rows, width) * 2]


def get_init_inputs():
    return []
