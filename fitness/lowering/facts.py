"""What host code may ask of the device a kernel is lowered for, by architecture name.

Numbers are those of one common card of each architecture. A host function that sizes its grid by the number
of multiprocessors gets them from here, so a plan is made for that card; on a GPU it gets those of the card at
hand.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """One card.

    Attributes:
        arch: as users write it, e.g. "sm_90".
        backend: Triton's name: "cuda" or "hip".
        name: what ``torch.cuda.get_device_name`` says.
        multiprocessors: streaming multiprocessors or compute units.
        shared: bytes of shared memory that one program may have.
        memory: bytes of device memory.
        l2: bytes of the second-level cache.
        warp: threads that run together.
    """

    arch: str
    backend: str
    name: str
    multiprocessors: int
    shared: int
    memory: int
    l2: int
    warp: int = 32

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor version; (9, 4) for gfx942."""
        digits = self.arch.removeprefix("sm_").removeprefix("gfx")
        return (
            (int(digits[:-1]), int(digits[-1]))
            if self.backend == "cuda"
            else (int(digits[0]), int(digits[1]))
        )


CARDS = {
    facts.arch: facts
    for facts in (
        Facts("sm_80", "cuda", "NVIDIA A100-SXM4-80GB", 108, 166912, 80 << 30, 40 << 20),
        Facts("sm_86", "cuda", "NVIDIA GeForce RTX 3090", 82, 101376, 24 << 30, 6 << 20),
        Facts("sm_89", "cuda", "NVIDIA GeForce RTX 4090", 128, 101376, 24 << 30, 72 << 20),
        Facts("sm_90", "cuda", "NVIDIA H200", 132, 232448, 141 << 30, 60 << 20),
        Facts("sm_100", "cuda", "NVIDIA B200", 148, 232448, 180 << 30, 126 << 20),
        Facts("sm_120", "cuda", "NVIDIA GeForce RTX 5090", 170, 101376, 32 << 30, 96 << 20),
        Facts("gfx942", "hip", "AMD Instinct MI300X", 304, 65536, 192 << 30, 4 << 20, 64),
        Facts("gfx90a", "hip", "AMD Instinct MI250X", 104, 65536, 64 << 30, 8 << 20, 64),
    )
}
