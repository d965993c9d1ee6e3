"""Fitness: is a kernel right, and how fast is it, on real hardware?

Public surface::

    verdict = fitness.verify(source, "softmax")       # one kernel, the whole gate and the timer
    target = fitness.open_target("cpu", "softmax", folder=…)   # what the search loop uses

Errors: ``FitnessError``, that is ``ProblemError`` (the problem file) or ``DeviceError`` (the machine).
A bad kernel is no error but a ``Verdict``. Importing this package loads neither torch nor a compiler.
"""

from __future__ import annotations

from fitness.card import Case, ProblemCard, TensorSpec
from fitness.outline import outlines
from fitness.target import Admission, Built, DeviceError, FitnessError, ProblemError, Target
from fitness.verify import open_target, problem_names, scratch_folder, verify

__all__ = [
    "Admission",
    "Built",
    "Case",
    "DeviceError",
    "FitnessError",
    "ProblemCard",
    "ProblemError",
    "Target",
    "TensorSpec",
    "open_target",
    "outlines",
    "problem_names",
    "scratch_folder",
    "verify",
]
