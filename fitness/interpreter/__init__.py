"""Runs launch plans without a device: Triton's interpreter in a confined child, numbers mended.

The child (``python -m fitness.interpreter``) has torch and triton imported under TRITON_INTERPRET=1 and forks
once for each plan; the fork gives up its rights before it sees a line of a candidate. What it runs is the
*plan* over the judge's data: the device functions of the cut module, never host code.

Triton's interpreter computes with NumPy, which is not the hardware. ``arithmetic`` mends bfloat16 and matrix
products, ``reductions`` reduces and scans in the order of a tree, ``libdevice`` and ``assembly`` serve
foreign functions from tables. What is in no table is said (``foreign``): such a kernel is lowered, its
numbers unchecked.
"""

from __future__ import annotations

MOST_PROGRAMS = 256  # of one launch
