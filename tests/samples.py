"""The sample problems of ``tests/problems``, and what tests that load them share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from fitness.judge.problem import Problem, load

SAMPLES = Path(__file__).parent / "problems"
CACHE = 32 << 20


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors: threads would only get into each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def sample(name: str) -> Problem:
    """A sample problem, loaded once for all tests."""
    return load(str(SAMPLES / f"{name}.py"), seed=1, cache_bytes=CACHE)
