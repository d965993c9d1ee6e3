"""A kernel is its source text. Everything else about it is derived or measured."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property


def source_sha(source: str) -> str:
    """SHA-256 of a source text, as 64 hexadecimal digits."""
    return hashlib.sha256(source.encode()).hexdigest()


@dataclass(frozen=True)
class Kernel:
    """One source text in one kernel language; it stands alone.

    Attributes:
        source: the whole text; what is exported is what was measured.
        language: "cpp" (later "triton", "cuda").
    """

    source: str
    language: str

    @cached_property
    def sha(self) -> str:
        """SHA-256 of the source: the key under which the run stores it."""
        return source_sha(self.source)
