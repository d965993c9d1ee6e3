"""How many blocks of a kernel fit a multiprocessor at a time, and what keeps more of them out.

The model of NVIDIA's occupancy calculator: whole warps get registers in units of 256, from a quarter of the
register file each (so their number is a multiple of four); a block gets shared memory in units of 128 bytes,
and 1 KiB is the system's. It is a bound: a small grid, or blocks that end at different times, stay below it.
"""

from __future__ import annotations

from dataclasses import dataclass

REGISTER_UNIT, QUARTERS = 256, 4  # registers of a warp come in such units, warps from one of four files
SHARED_UNIT, SHARED_RESERVED = 128, 1024
WARP = 32


@dataclass(frozen=True)
class Multiprocessor:
    """What one holds: ``warps`` and ``blocks`` at a time, ``registers`` of 32 bits, bytes of ``shared``."""

    warps: int
    blocks: int
    shared: int
    registers: int = 65536


MULTIPROCESSORS = {  # CUDA C++ programming guide, technical specifications per compute capability
    "sm_80": Multiprocessor(64, 32, 164 << 10),
    "sm_86": Multiprocessor(48, 16, 100 << 10),
    "sm_89": Multiprocessor(48, 24, 100 << 10),
    "sm_90": Multiprocessor(64, 32, 228 << 10),
    "sm_100": Multiprocessor(64, 32, 228 << 10),
    "sm_120": Multiprocessor(48, 24, 100 << 10),
}


@dataclass(frozen=True)
class Occupancy:
    """``blocks`` at a time, the ``share`` of all warps that they are, the ``limiter`` that allows no more."""

    blocks: int
    share: float
    limiter: str


def occupancy(arch: str, *, registers: int, shared: int, warps: int) -> Occupancy | None:
    """The bound for one kernel; where several limits are equal, the one that no change of the kernel moves.

    Args:
        arch: as users write it.
        registers: of a thread.
        shared: bytes of a block, static and dynamic together.
        warps: of a block, at least 1.

    Returns:
        None for an architecture that has no row in ``MULTIPROCESSORS``.
    """
    one = MULTIPROCESSORS.get(arch)
    if one is None:
        return None
    of_a_warp = _up(max(registers, 1) * WARP, REGISTER_UNIT)
    fitting = one.registers // QUARTERS // of_a_warp * QUARTERS
    limits = {
        "warps": one.warps // warps,
        "blocks": one.blocks,
        "registers": fitting // warps,
        "shared memory": one.shared // _up(shared + SHARED_RESERVED, SHARED_UNIT),
    }
    limiter = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limiter], limits[limiter] * warps / one.warps, limiter)


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
