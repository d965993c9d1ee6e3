"""What an operator is given and what it hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from populations.kernel import Kernel


@dataclass(frozen=True)
class Usage:
    """What a proposal cost to make."""

    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Proposal:
    """One child: a whole source, and one line on why it may be faster."""

    kernel: Kernel
    operator: str
    rationale: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Brief:
    """What an operator may know beside its parents.

    Attributes:
        problem: name of the problem.
        signature: the C++ entry with its arguments in order, as `problems NAME --signature` prints it.
        inputs: how many of the entry's pointers are read-only (inputs and parameters together).
        outputs: how many are outputs; they follow the inputs.
        cores: cores the kernel may use.
        cache_bytes: size of the last-level cache.
        line_bytes: cache line, in bytes.
        vector_bytes: widest vector register of the target, in bytes.
        running: names of the device functions that run where the parent is timed; empty: not known. A change
            to any other function changes no time.
    """

    problem: str
    signature: str
    inputs: int
    outputs: int
    cores: int = 2
    cache_bytes: int = 32 << 20
    line_bytes: int = 64
    vector_bytes: int = 64
    running: tuple[str, ...] = ()


class Operator(Protocol):
    """A mutation (arity 1) or crossover (arity 2). One child a call; ``None`` where its precondition fails.

    Chance is an argument: the same parents, brief and generator state give the same child.
    """

    @property
    def name(self) -> str:
        """Short, stable name, as the log shows it."""

    @property
    def arity(self) -> int:
        """How many parents it takes."""

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:
        """The child, or None where the precondition does not hold."""
