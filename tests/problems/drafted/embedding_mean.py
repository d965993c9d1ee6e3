"""The mean of the rows that tokens choose."""

import torch
from torch import nn

vocabulary = 50
width = 24
batch = 6
length = 10


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, tokens):
        return self.table(tokens).mean(dim=1)


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, width]
