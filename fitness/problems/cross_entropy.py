"""Mean cross-entropy of logits over a large vocabulary against class numbers."""

import torch
from torch import nn

from fitness.cases import rows_by_columns

BATCH = 56
CLASSES = 32000
BITS = 32
DTYPE = torch.float32 if BITS == 32 else torch.bfloat16
SIZES = {"cuda": {"BATCH": 8192, "CLASSES": 128256, "BITS": 16}}
POLICY = "warm"


def TOLERANCE(inputs, _parameters, _outputs, u):
    logits, targets = inputs
    lse = logits.logsumexp(-1)
    top = logits.amax(-1).abs()
    picked = logits.gather(1, targets[:, None])[:, 0].abs()
    terms = 32 + CLASSES**0.5 + CLASSES / 64
    row = u * (terms + 4 * (lse.abs() + top + picked))  # log turns relative into absolute
    loss = u * (8 + BATCH**0.5) * (lse.abs() + picked)  # the mean over the batch
    return [(row + loss).mean()]


class Model(nn.Module):
    def forward(self, logits, targets):
        return nn.functional.cross_entropy(logits.float(), targets)  # a loss in float32


def get_inputs():
    return [torch.randn(BATCH, CLASSES, dtype=DTYPE), torch.randint(0, CLASSES, (BATCH,))]


def get_init_inputs():
    return []


def get_cases(seed):
    distributions = "spiky tiny large normal special uniform rowscale ties integers normal"
    return rows_by_columns(seed, ("BATCH", "CLASSES"), (BATCH, CLASSES), distributions)


def flops_and_bytes(case):
    batch, classes = case.inputs[0].shape
    return 4 * batch * classes, None  # max, subtract, exp, add
