"""What agents find out that is no kernel: why one is slow, and what many of them teach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnosis:
    """What holds a kernel back: the bottleneck, what shows it, and what to do about it."""

    bottleneck: str
    evidence: tuple[str, ...]
    prescriptions: tuple[str, ...]


@dataclass(frozen=True)
class Lesson:
    """A short lesson, and the ids of the kernels that support it."""

    text: str
    ids: tuple[int, ...]
