"""Operators make kernels from kernels: structural rewrites, a tuner of numbers, and crossovers.

An operator takes parents, a brief and a generator of chance, and returns one ``Proposal`` or ``None``; see
``operators.proposal.Operator``. A user's own operator needs no more; ``operators.testing.OperatorContract``
tests it. Nothing here knows of hardware beyond what the brief says, or of any judge.
"""

from __future__ import annotations

from operators.crossover import CrossFunctions, CrossNumbers, CrossPragmas
from operators.proposal import Brief, Operator, Proposal, Usage
from operators.tune import Tune, Tuner, configuration, neighbours, space, with_values


def builtin(language: str) -> tuple[Operator, ...]:
    """All operators of a kernel language that need no model, in a stable order: structural, tune, crossovers.

    Raises:
        ValueError: no operators for that language.
    """
    if language == "cpp":
        from operators.cpp import STRUCTURAL  # the grammar is loaded only where it is used

        return (*STRUCTURAL, Tune(), CrossNumbers(), CrossFunctions(), CrossPragmas())
    if language == "triton":
        from operators.triton import STRUCTURAL as TRITON
        from operators.triton.cross import CROSSINGS

        return (*TRITON, Tune(), CrossNumbers(), CrossFunctions(), *CROSSINGS)
    raise ValueError(f"no operators for {language!r}; there are some for 'cpp' and 'triton'")


__all__ = [
    "Brief",
    "CrossFunctions",
    "CrossNumbers",
    "CrossPragmas",
    "Operator",
    "Proposal",
    "Tune",
    "Tuner",
    "Usage",
    "builtin",
    "configuration",
    "neighbours",
    "space",
    "with_values",
]
