"""The gate and the timer on one file: what ``kernel-evo verify`` does and prints."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import fitness
from evo.export import cases_passed, refused
from evo.settings import SettingsError
from evo.summary import verdict_summary
from evo.toolset import LANGUAGES
from fitness.target import Target
from fitness.verify import judge_once, resolved
from populations.export_check import Agreement, ExportCheck
from populations.kernel import Kernel
from populations.text import read_text
from populations.verdict import Outcome, Stage, Verdict


def verified(
    file: Path, problem: str, target: str, sandboxed: bool, entry: str | None = None, arch: str = "sm_90"
) -> tuple[Verdict, dict[str, Any]]:
    """The verdict on a kernel in a file, and the same as the JSON document.

    Args:
        file: a kernel; one that ends in .py is Triton.
        problem, target: as the command line takes them.
        sandboxed: whether the kernel is confined.
        entry: name of a Triton kernel's host function; None: the usual ones.
        arch: what Triton kernels are lowered for where there is no GPU.

    Raises:
        SettingsError: the file cannot be read, or a C++ kernel is given an entry.
        FitnessError: the problem or the machine is at fault.
    """
    language = "triton" if file.suffix == ".py" else LANGUAGES.get(target, "cpp")
    if entry is not None and language == "cpp":
        raise SettingsError(
            f"--entry {entry}: a C++ kernel's entry is always kernel_function; leave --entry out"
        )
    target = resolved(target, language)
    try:
        kernel = Kernel(read_text(file), language)
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8 text: name a file with a kernel's source") from None
    with (
        fitness.scratch_folder() as folder,
        closing(
            fitness.open_target(
                target,
                problem,
                folder=folder,
                sandboxed=sandboxed,
                language=language,
                entry=entry,
                arch=arch,
            )
        ) as opened,
    ):
        verdict = judge_once(opened, kernel)
        # The target measured its baselines only if the kernel came as far as the timer.
        calibration = opened.calibrate() if verdict.stage is Stage.TIMING else None
        card = opened.card
        check = _exported(opened, kernel, verdict)
    if check is not None and check.agreement is Agreement.DIFFERENT:
        verdict = refused(verdict, check)
    return verdict, verdict_summary(
        verdict,
        source_sha=kernel.sha,
        language=kernel.language,
        target=target,
        calibration=calibration,
        card=card,
        check=check,
    )


def _exported(target: Target, kernel: Kernel, verdict: Verdict) -> ExportCheck | None:
    """The file itself, run once beside what was measured, where a target can do that."""
    look = getattr(target, "check_export", None)
    if look is None or verdict.status not in (Outcome.CORRECT, Outcome.MEASURED):
        return None
    check: ExportCheck = look(kernel.source, kernel, cases_passed(verdict))
    return check
