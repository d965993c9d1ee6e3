"""Structural rewrites of C++ kernels, family by family."""

from operators.cpp.blocks import BLOCKS
from operators.cpp.fusion import FUSION
from operators.cpp.loops import LOOPS
from operators.cpp.maths import MATHS
from operators.cpp.memory import MEMORY
from operators.cpp.online import ONLINE
from operators.cpp.parallel import PARALLEL
from operators.cpp.passes import PASSES
from operators.cpp.scans import SCANS
from operators.cpp.vector import VECTOR

STRUCTURAL = (*PARALLEL, *VECTOR, *FUSION, *LOOPS, *BLOCKS, *MEMORY, *MATHS, *ONLINE, *PASSES, *SCANS)

__all__ = ["STRUCTURAL"]
