"""The cells that kernels fall into: levels of a few traits with fixed edges, in an author's words.

Where a kernel has a profile of its binary its levels are facts of that, else they are read from its source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from populations.kernel import Kernel
from populations.profile import KernelProfile, main_kernel

Profile = tuple[KernelProfile, ...]
Cell = tuple[int | None, ...]
REGISTERS = (64, 128)  # of a thread: a multiprocessor holds 32 or 16 warps of as many
STAGED = 8 << 10  # bytes of shared memory beyond what exchanges between warps take
FEW_LOOPS = 3
WIDE = 128  # bits of the widest access


@dataclass(frozen=True)
class Trait:
    """One way in which kernels differ.

    Attributes:
        levels: what a kernel of each level does.
        level: a kernel's, from its source without comments and its profile; None: it cannot be told.
    """

    levels: tuple[str, ...]
    level: Callable[[str, Profile], int | None]


def cell(kernel: Kernel, profile: Profile = ()) -> Cell:
    """A kernel's level of each trait of its language.

    Args:
        kernel: its source.
        profile: of its device functions; empty: not known.
    """
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", kernel.source, flags=re.DOTALL)
    return tuple(trait.level(code, profile) for trait in TRAITS.get(kernel.language, ()))


def _has(pattern: str) -> Callable[[str, Profile], int | None]:
    return lambda code, _: int(re.search(pattern, code) is not None)


def _vectors(code: str, _: Profile) -> int:
    if re.search(r"\b_mm\d*_|\b__m\d+|vector_size", code):
        return 2
    return int(re.search(r"#\s*pragma\s+omp\s+.*\bsimd\b", code) is not None)


def _loops(code: str, _: Profile) -> int:
    return int(len(re.findall(r"\bfor\s*\(", code)) > FEW_LOOPS)


def _registers(_: str, profile: Profile) -> int | None:
    main = main_kernel(profile)
    if main is None or main.registers is None:
        return None
    return sum(main.registers > edge for edge in REGISTERS)


def _staging(_: str, profile: Profile) -> int | None:
    main = main_kernel(profile)
    return None if main is None or main.shared_bytes is None else int(main.shared_bytes > STAGED)


def _launches(_: str, profile: Profile) -> int | None:
    return int(sum(one.launches for one in profile) > 1) if profile else None


def _width(_: str, profile: Profile) -> int | None:
    main = main_kernel(profile)
    if main is None or not main.load_bits:
        return None
    return int(2 * main.load_bits.get(WIDE, 0) >= sum(main.load_bits.values()))


_TYPES = r"(?:float|double|auto|__m\d+\w*|u?int\d*(?:_t)?)"
TRAITS = {
    "cpp": (
        Trait(
            ("one thread alone", "threads that share the outermost loop"),
            _has(r"#\s*pragma\s+omp\s+parallel"),
        ),
        Trait(
            (
                "plain loops, of which the compiler makes vectors where it can",
                "loops with `#pragma omp simd`, and lanes for what is summed or compared",
                "explicit vectors: intrinsics, or types with a vector_size",
            ),
            _vectors,
        ),
        Trait(
            (
                "at most three loops in all: passes joined into one, with running results",
                "more loops: blocks that stay in the caches, or passes simple enough to become vectors",
            ),
            _loops,
        ),
        Trait(
            (
                "no buffer: what lies between input and output stays in registers",
                "a small local buffer for what lies between input and output, in the first-level cache",
            ),
            _has(rf"\b{_TYPES}\s+\w+\s*\[|\balignas\b|std::(?:array|vector)\b"),
        ),
    ),
    "triton": (
        Trait(
            (
                "few registers (at most 64 a thread), so that many warps run at a time",
                "a moderate number of registers (65 to 128 a thread)",
                "many registers (more than 128 a thread): more work held at once by each thread",
            ),
            _registers,
        ),
        Trait(
            (
                "little shared memory: data goes from global memory to registers and back",
                "data staged in shared memory (more than 8 KiB of it)",
            ),
            _staging,
        ),
        Trait(("all the work in one launch", "the work split over several launches"), _launches),
        Trait(
            (
                "loads in whatever order the access needs, narrow ones included",
                "wide loads: 16 contiguous and aligned bytes a thread",
            ),
            _width,
        ),
    ),
}
