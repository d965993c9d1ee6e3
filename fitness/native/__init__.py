"""Small C programs that this package carries as source: ``sandbox`` builds, ``runner`` runs, ``awake`` waits;
and the library ``enter``, with which a forked Python process gives up its rights.

They are compiled with gcc the first time they are needed and kept in a per-user cache, under a name that
holds the hash of source, flags and compiler, so a new version never meets an old binary.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fitness.target import DeviceError

COMPILERS_SEE = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")  # of the environment: no keys
FLAGS = ("-O2", "-std=gnu11", "-fopenmp", "-Wl,-z,relro,-z,now")
SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Features:
    """What this system offers to keep untrusted code in. ``landlock_abi`` is 0 where there is none."""

    user_namespace: bool
    network_namespace: bool
    pid_namespace: bool
    landlock_abi: int
    seccomp: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """What lacks, in words; empty where untrusted kernels can be kept in."""
        present = {
            "user namespaces": self.user_namespace,
            "network namespaces": self.network_namespace,
            "process namespaces": self.pid_namespace,
            "Landlock": self.landlock_abi > 0,
            "seccomp": self.seccomp,
        }
        return tuple(name for name, there in present.items() if not there)


@cache
def features() -> Features:
    """What the system offers, as the sandbox itself finds it by trying.

    Raises:
        DeviceError: there is no gcc, or the sandbox does not run.
    """
    done = subprocess.run([tool("sandbox"), "--probe"], capture_output=True, text=True, env={}, timeout=30)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if done.returncode != 0 or "seccomp" not in found:
        raise DeviceError(f"the sandbox cannot look at this system: {done.stderr.strip() or done.returncode}")
    return Features(
        user_namespace=found["user_namespace"] == "1",
        network_namespace=found["network_namespace"] == "1",
        pid_namespace=found["pid_namespace"] == "1",
        landlock_abi=int(found["landlock_abi"]),
        seccomp=found["seccomp"] == "1",
    )


def require(*, sandboxed: bool) -> None:
    """Refuse to go on without a feature that the sandbox needs, unless the user said ``--unsandboxed``.

    Raises:
        DeviceError: one is missing.
    """
    missing = features().missing
    if sandboxed and missing:
        raise DeviceError(
            f"this kernel lacks {', '.join(missing)}, which the sandbox needs; "
            "--unsandboxed runs candidates unconfined (verdicts then say isolation: weak)"
        )


@cache
def tool(name: str) -> Path:
    """Path of the compiled ``name`` ("sandbox", "runner", "awake"); compiles it where the cache lacks it.

    Raises:
        DeviceError: there is no gcc, or it fails.
    """
    return _made(name, FLAGS)


@cache
def library(name: str) -> Path:
    """Path of the shared library ``name`` ("enter"), likewise."""
    return _made(name, (*FLAGS, "-shared", "-fPIC"))


def _made(name: str, flags: tuple[str, ...]) -> Path:
    sources = [SOURCES / "confine.h", SOURCES / f"{name}.c"]
    contents = [source.read_bytes() for source in sources]
    text = b"\0".join([*contents, " ".join(flags).encode(), _gcc_version()])
    path = cache_folder() / "native" / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"
    if not path.exists():
        _compile(sources[-1], path, flags)
    return path


def cache_folder() -> Path:
    """This user's cache folder: below XDG_CACHE_HOME or ~/.cache, else in the system's temporary folder."""
    home = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if _has_home() else None)
    if home is not None:
        folder = Path(home) / "kernel-evo"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            pass  # no home that can be written: below
        else:
            if os.access(folder, os.W_OK):
                return folder
    folder = Path(tempfile.gettempdir()) / f"kernel-evo-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():
        raise DeviceError(f"{folder} belongs to somebody else; set XDG_CACHE_HOME to a folder of your own")
    return folder


def _has_home() -> bool:
    try:
        return Path.home().is_dir()
    except RuntimeError:
        return False


def environment(names: Iterable[str]) -> dict[str, str]:
    """The part of this process's environment that has these names: what a child is let see."""
    return {name: os.environ[name] for name in names if name in os.environ}


def compilers_environment() -> dict[str, str]:
    """What of this process's environment a compiler that we call outside of the sandbox gets to see."""
    return environment(COMPILERS_SEE)


@cache
def _gcc_version() -> bytes:
    ask, seen = ["gcc", "--version"], compilers_environment()
    try:
        return subprocess.run(ask, capture_output=True, check=True, timeout=30, env=seen).stdout
    except (OSError, subprocess.SubprocessError) as why:
        raise DeviceError(f"gcc does not run ({why}); install it: C++ kernels are built with it") from why


def _compile(source: Path, path: Path, flags: tuple[str, ...]) -> None:
    """Compile into a new file of its own and rename it: two processes may do this at once."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        done = subprocess.run(
            ["gcc", *flags, str(source), "-o", str(made), "-ldl"],
            capture_output=True,
            text=True,
            timeout=120,
            env=compilers_environment(),
        )
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
            raise DeviceError(f"gcc cannot compile {source.name}: {first.strip()}")
        made.replace(path)
