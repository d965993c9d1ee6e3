"""Structural rewrites of Triton kernels, family by family."""

from operators.triton.adopt import ADOPTING, adopt
from operators.triton.launch import LAUNCHES
from operators.triton.loads import LOADS
from operators.triton.loops import LOOPS
from operators.triton.masks import MASKS
from operators.triton.maths import MATHS
from operators.triton.memory import MEMORY
from operators.triton.nests import NESTS
from operators.triton.passes import PASSES
from operators.triton.products import PRODUCTS
from operators.triton.sizes import SIZES
from operators.triton.sums import SUMS
from operators.triton.tiles import TILES

STRUCTURAL = (
    *ADOPTING,
    *LAUNCHES,
    *SIZES,
    *TILES,
    *MEMORY,
    *LOADS,
    *MASKS,
    *MATHS,
    *PRODUCTS,
    *SUMS,
    *LOOPS,
    *NESTS,
    *PASSES,
)

__all__ = ["STRUCTURAL", "adopt"]
