"""The gate and the timer on one file: what ``kernel-evo verify`` does and prints."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import fitness
from evo.settings import SettingsError
from evo.summary import verdict_summary
from evo.toolset import LANGUAGES
from fitness.verify import judge_once
from populations.kernel import Kernel
from populations.text import read_text
from populations.verdict import Stage, Verdict


def verified(file: Path, problem: str, target: str, sandboxed: bool) -> tuple[Verdict, dict[str, Any]]:
    """The verdict on a kernel in a file, and the same as the JSON document.

    Raises:
        SettingsError: the file cannot be read.
        FitnessError: the problem or the machine is at fault.
    """
    target = "cpu" if target == "auto" else target
    try:
        kernel = Kernel(read_text(file), LANGUAGES.get(target, "cpp"))
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8 text: name a file with a kernel's source") from None
    with (
        fitness.scratch_folder() as folder,
        closing(fitness.open_target(target, problem, folder=folder, seed=0, sandboxed=sandboxed)) as opened,
    ):
        verdict = judge_once(opened, kernel)
        # The target measured its baselines only if the kernel came as far as the timer.
        calibration = opened.calibrate() if verdict.stage is Stage.TIMING else None
        card = opened.card
    return verdict, verdict_summary(
        verdict,
        source_sha=kernel.sha,
        language=kernel.language,
        target=target,
        calibration=calibration,
        card=card,
    )
