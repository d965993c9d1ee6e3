"""Structural rewrites of C++ kernels, family by family."""

from operators.cpp.blocks import BLOCKS
from operators.cpp.loops import LOOPS
from operators.cpp.maths import MATHS
from operators.cpp.memory import MEMORY
from operators.cpp.parallel import PARALLEL
from operators.cpp.passes import PASSES
from operators.cpp.scans import SCANS
from operators.cpp.vector import VECTOR

STRUCTURAL = (*PARALLEL, *VECTOR, *LOOPS, *BLOCKS, *MEMORY, *MATHS, *PASSES, *SCANS)

__all__ = ["STRUCTURAL"]
