"""Open a target by name, and verify one kernel on one problem."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from inspect import signature
from pathlib import Path

from fitness.target import Admission, Built, DeviceError, Target
from populations.kernel import Kernel
from populations.plugin import plugin
from populations.verdict import Verdict

TARGETS = ("auto", "cpu", "cuda")


def problem_names() -> tuple[str, ...]:
    """Names of the built-in problems."""
    entries = (files("fitness") / "problems").iterdir()
    return tuple(
        sorted(e.name.removesuffix(".py") for e in entries if e.name.endswith(".py") and e.name[0] != "_")
    )


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for one target, removed in the end, unless the target broke and left a log."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-evo-"))
    keep = False
    try:
        yield folder
    except DeviceError:
        keep = any(log.stat().st_size for log in folder.glob("*.log"))
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def resolved(target: str, language: str = "cpp") -> str:
    """What "auto" means for kernels of a language: the GPU for Triton, where there is one, else the CPU."""
    if target != "auto":
        return target
    gpu = Path("/dev/kfd").exists() or any(Path("/dev").glob("nvidia[0-9]*"))
    return "cuda" if language == "triton" and gpu else "cpu"


def open_target(
    target: str,
    problem: str,
    *,
    folder: Path,
    seed: int = 0,
    sandboxed: bool = True,
    language: str = "cpp",
    entry: str | None = None,
    arch: str = "sm_90",
) -> Target:
    """The named target with a problem loaded.

    Args:
        target: "auto", "cpu", "cuda", or "package.module:Name" of a class with the same arguments.
        problem: name of a built-in problem, or path of a problem file.
        folder: for libraries and logs.
        seed: of the held-out shapes.
        sandboxed: whether candidates are confined.
        language: of the kernels. Triton ones on "cpu" are lowered and interpreted, never timed.
        entry: name of a Triton kernel's host function; None: the usual ones.
        arch: what Triton kernels are lowered for where there is no GPU.

    Raises:
        FitnessError: unknown target, or what opening it says.
    """
    if ":" in target:
        try:
            factory = plugin(target)
        except LookupError as why:
            raise DeviceError(f"--target {why.args[0]}") from None
        if not _opens(factory):
            raise DeviceError(
                f"--target {target} is no target; name a class that takes "
                "(problem, *, folder, seed, sandboxed)"
            )
        plugged: Target = factory(problem, folder=folder, seed=seed, sandboxed=sandboxed)
        return plugged
    if target not in TARGETS:
        raise DeviceError(
            f"--target {target} is not known; use one of {', '.join(TARGETS)}, or package.module:Name"
        )
    target = resolved(target, language)
    if target == "cuda":
        from fitness.cuda import CudaTarget

        return CudaTarget(problem, folder=folder, seed=seed, sandboxed=sandboxed, entry=entry)
    if language == "triton":
        from fitness.lowered import LoweredTarget

        return LoweredTarget(problem, folder=folder, seed=seed, sandboxed=sandboxed, arch=arch, entry=entry)
    from fitness.cpu import CpuTarget  # here, so that importing fitness stays cheap

    return CpuTarget(problem, folder=folder, seed=seed, sandboxed=sandboxed)


def _opens(factory: object) -> bool:
    """Whether it can be called as a target's class is."""
    try:
        return callable(factory) and bool(signature(factory).bind("", folder="", seed=0, sandboxed=True))
    except (TypeError, ValueError):
        return False


def verify(
    source: str,
    problem: str,
    *,
    language: str = "cpp",
    target: str = "auto",
    seed: int = 0,
    sandboxed: bool = True,
    entry: str | None = None,
    arch: str = "sm_90",
) -> Verdict:
    """The whole gate and the timer on one kernel: what ``kernel-evo verify`` does.

    Args:
        source: the kernel's text.
        problem: name of a built-in problem, or path of a problem file.
        language: of the source: "cpp" or "triton".
        target, entry, arch: see ``open_target``.
        seed: of the held-out shapes.
        sandboxed: whether the kernel is confined.

    Raises:
        FitnessError: the problem or the machine is at fault, not the kernel.
    """
    with scratch_folder() as folder:
        opened = open_target(
            target,
            problem,
            folder=folder,
            seed=seed,
            sandboxed=sandboxed,
            language=language,
            entry=entry,
            arch=arch,
        )
        try:
            return judge_once(opened, Kernel(source, language))
        finally:
            opened.close()


def judge_once(target: Target, kernel: Kernel) -> Verdict:
    """Admit, build and promote one kernel; the judge measures its baselines only once a kernel was right."""
    admission = target.admit(kernel)
    if not isinstance(admission, Admission):
        return admission
    built = target.build(admission)
    if not isinstance(built, Built):
        return built
    return target.promote(built)
