"""From a Triton source to a launch plan, without a GPU.

Untrusted code runs in two confined children, forked from a process that has torch and Triton imported::

    source.read     the text's own rules                          here
    trace           the host function, on tensors without memory  first child: makes JSON only
    cut             the device functions, from the syntax tree    here
    compiling       binaries of what the trace launched           second child: never sees host code
    LaunchPlan      what any judge runs                           here, from checked JSON and files

This package imports neither torch nor Triton; the children do.
"""

from __future__ import annotations

from fitness.lowering.client import Lowered, Lowering
from fitness.lowering.source import admit

__all__ = ["Lowered", "Lowering", "admit"]
