"""What this machine has and lacks for a search; each finding says what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

PACKAGES = ("evo", "operators", "fitness", "populations")
OURS = "kernel-evo"


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ``ok`` False: a run would refuse or lie; ``cure`` says what to do."""

    name: str
    ok: bool
    value: str
    cure: str | None = None


def examine(runs: Path = Path("runs")) -> list[Finding]:
    """Look at everything a CPU search needs; a few seconds, most of them for importing torch in a child."""
    return [_cores(), _cache(), _compiler(), _sandbox(), _torch(), _owners(), _writable(runs)]


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0))
    return Finding("cores", True, str(cores))


def _cache() -> Finding:
    sizes = [
        path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    ]
    return Finding("caches", True, ", ".join(sorted(sizes, key=_kib)) or "unknown")


def _kib(size: str) -> int:
    digits = "".join(c for c in size if c.isdigit())
    return int(digits or 0) * (1024 if size.endswith("M") else 1)


def _compiler() -> Finding:
    path = shutil.which("g++")
    if path is None:
        return Finding("g++", False, "not found", "install g++ (Debian and Ubuntu: apt-get install g++)")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    return Finding("g++", said.returncode == 0, (said.stdout.splitlines() or ["no version"])[0])


def _sandbox() -> Finding:
    from fitness import native

    missing = native.features().missing
    if missing:
        cure = "run on a kernel that has them, or say --unsandboxed (verdicts then say isolation: weak)"
        return Finding("sandbox", False, f"lacks {', '.join(missing)}", cure)
    return Finding("sandbox", True, "complete")


def _torch() -> Finding:
    """In a child of its own, as in a run: this process never imports torch."""
    code = "import torch; print(torch.__version__, torch.get_num_threads(), 'threads')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    if said.returncode == 0:
        return Finding("torch", True, said.stdout.strip())
    last = (said.stderr.strip().splitlines() or ["no message"])[-1]
    return Finding("torch", False, last, "install torch (its CPU build is enough)")


def _owners() -> Finding:
    """Another project installs a top-level ``evo``, and no installer warns of the clash."""
    owners = packages_distributions()
    foreign = sorted(
        {f"{name} of {owner}" for name in PACKAGES for owner in owners.get(name, []) if owner != OURS}
    )
    if foreign:
        return Finding(
            "packages", False, ", ".join(foreign), "uninstall it, or use an environment of its own"
        )
    return Finding("packages", True, "ours alone")


def _writable(runs: Path) -> Finding:
    folder = runs if runs.is_dir() else runs.absolute().parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            return Finding("run folder", True, str(runs))
    except OSError as error:
        return Finding(
            "run folder", False, f"{folder}: {error.strerror}", "name a writable one with --run-dir"
        )
