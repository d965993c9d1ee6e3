"""The identity of the verifier: verdicts carry it, so that a stricter gate can judge old elites again."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files


@cache
def verifier_hash() -> str:
    """Hash over all code that decides a verdict (judge, runner, language), as 16 hexadecimal digits."""
    digest = hashlib.sha256()
    package = files("fitness")
    for folder in ("judge", "judge/cuda", "native", "lowering", "interpreter", "exported"):
        for entry in sorted((package / folder).iterdir(), key=lambda e: e.name):
            if entry.name.endswith((".py", ".c", ".h")):
                digest.update(entry.name.encode())
                digest.update(entry.read_bytes())
    for name in ("cpp.py", "cpp_source.py", "library.py"):
        digest.update((package / name).read_bytes())
    return digest.hexdigest()[:16]
