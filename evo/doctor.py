"""What this machine has and lacks for a search; each finding says what to do about it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

from evo.profiles import roofline_line
from fitness import machine, native
from fitness.judging import passed_on
from fitness.roofline import kept_rooflines
from fitness.target import DeviceError
from operators.agents.errors import SetupError
from operators.agents.models import ModelSettings
from operators.agents.probe import Probe, probe

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
    found = [_cores(), _cache(), _compiler(), _sandbox(), _torch(), _owners(), _writable(runs)]
    return [*found, *_rooflines()]


def models(named: Sequence[ModelSettings]) -> list[Finding]:
    """Each asked one tiny thing."""
    return [_model(probe(model, os.environ)) for model in named]


def _model(found: Probe) -> Finding:
    cure = None if found.works else "see docs/agents.md on models; a run with it is refused"
    if not found.works and not isinstance(found.failure, SetupError):
        cure = "it may pass: a run is not refused for it"
    return Finding(f"model {found.model}", found.works, found.says, cure)


def _cores() -> Finding:
    vectors = f"vectors of {8 * machine.vector_bytes()} bits"
    return Finding("processor", True, f"{machine.cpu_model()}, {machine.cores()} cores, {vectors}")


def _cache() -> Finding:
    return Finding("last-level cache", True, f"{machine.cache_bytes() / 2**20:.0f} MiB")


def _compiler() -> Finding:
    try:
        return Finding("g++", True, machine.compiler())
    except DeviceError as error:
        return Finding("g++", False, str(error), "install g++ (Debian and Ubuntu: apt-get install g++)")


def _sandbox() -> Finding:
    try:
        missing = native.features().missing
    except DeviceError as error:
        return Finding("sandbox", False, str(error), "install gcc (Debian and Ubuntu: apt-get install gcc)")
    if missing:
        cure = "run on a kernel that has them, or say --unsandboxed (verdicts then say isolation: weak)"
        return Finding("sandbox", False, f"lacks {', '.join(missing)}", cure)
    return Finding("sandbox", True, "complete")


def _torch() -> Finding:
    """In a child of its own, as in a run: this process never imports torch."""
    code = "import torch; print(torch.__version__, torch.get_num_threads(), 'threads')"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=passed_on()
    )
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


def _rooflines() -> list[Finding]:
    """What GPUs reached when they were measured; nothing where none was."""
    return [
        Finding(f"roofline of {kept.identity.get('device', 'a GPU')}", True, roofline_line(kept.roofline))
        for kept in kept_rooflines()
    ]


def _writable(runs: Path) -> Finding:
    folder = runs if runs.is_dir() else runs.absolute().parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            return Finding("run folder", True, str(runs))
    except OSError as error:
        return Finding(
            "run folder", False, f"{folder}: {error.strerror}", "name a writable one with --run-dir"
        )
