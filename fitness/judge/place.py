"""Where the judge makes its data: on the CPU, unless a rig moves it to a device.

A default device for the whole process would be simpler to use, but it makes every operation of PyTorch pass
through Python; so whatever makes tensors says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_place = [torch.device("cpu")]


def move_to(device: torch.device) -> None:
    """Make data on this device from now on."""
    _place[0] = device


def place() -> torch.device:
    """Where data is made."""
    return _place[0]


@contextmanager
def in_place() -> Iterator[None]:
    """Within it, what says no device makes its tensors there: code of the user's, draws of inputs."""
    if _place[0].type == "cpu":
        yield
        return
    with _place[0]:
        yield
