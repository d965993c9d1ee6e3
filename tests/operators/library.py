"""Builds small kernels with the flags that candidates are built with."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

FLAGS = str.split(
    "-std=c++17 -O3 -march=native -fopenmp -nostartfiles -D__FAST_MATH__ -fno-math-errno -fno-trapping-math "
    "-fassociative-math -freciprocal-math -fno-signed-zeros -shared -fPIC"
)


def one_library(sources: dict[str, str], path: Path) -> ctypes.CDLL:
    """All kernels in one library, each in a namespace, its entry renamed to its key."""
    includes = sorted(
        {line for source in sources.values() for line in source.splitlines() if line[:8] == "#include"}
    )
    parts = ["\n".join(includes)]
    for key, source in sources.items():
        code = re.sub(r"^#include.*$", "", source, flags=re.MULTILINE).replace("kernel_function", key)
        parts.append(f"namespace of_{key} {{\n{code}\n}}")
    path.with_suffix(".cpp").write_text("\n".join(parts))
    subprocess.run(["g++", *FLAGS, path.with_suffix(".cpp"), "-o", path], check=True)
    return ctypes.CDLL(str(path))
