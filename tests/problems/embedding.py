"""Rows of a table, scaled."""

import torch
from torch import nn

vocabulary = 100
width = 32
length = 48


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, tokens):
        return self.table(tokens) * 2.0


def get_inputs():
    return [torch.randint(0, vocabulary, (length,))]


def get_init_inputs():
    return [vocabulary, width]
