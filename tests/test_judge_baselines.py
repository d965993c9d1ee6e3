"""Baselines that a problem file names stand beside eager and torch.compile, through the same gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from fitness.judge.baselines import standing
from fitness.judge.problem import load

PROBLEM = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []


TOLERANCE = {"operation": "softmax", "dim": -1}
BASELINES = {
    "library": lambda x: torch.softmax(x, dim=-1),
    "coarse": lambda x: torch.softmax(x.bfloat16(), dim=-1).float(),
    "missing": lambda x: torch.ops.no_such_library.softmax(x),
}
"""


@pytest.mark.parametrize(
    ("name", "counts", "reason"),
    [
        ("library", True, None),
        ("coarse", False, "fails the gate"),
        ("missing", False, "BASELINES['missing'] raised"),
    ],
)
def test_a_named_baseline_counts_where_it_is_right(
    tmp_path: Path, name: str, counts: bool, reason: str | None
) -> None:
    file = tmp_path / "problem.py"
    file.write_text(PROBLEM)
    given = load(str(file), seed=0, cache_bytes=32 << 20, memory_bytes=4 << 30).cases[0]
    found = standing(name, given, "00" * 16)
    assert found.counts is counts
    assert (found.reason is None) if reason is None else (reason in str(found.reason))
