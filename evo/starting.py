"""The kernels a run starts from: the user's files, and the built-in seeds or a draft of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import fitness
from evo.course import SEED
from evo.settings import SettingsError
from fitness.card import ProblemCard
from fitness.target import Admission, Built, Target
from operators.draft import Argument, Undraftable, draft
from operators.proposal import Proposal
from populations.kernel import Kernel
from populations.seeds import seeds

Named = tuple[str, Proposal]  # the words that name it in a message, and the kernel


def given(files: Sequence[Path], language: str) -> list[Named]:
    """The user's starting kernels.

    Raises:
        SettingsError: a file that cannot be read.
    """
    found = []
    for file in files:
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(f"--seeds {file} cannot be read: {why}; check the path") from None
        found.append((f"--seeds {file}", Proposal(Kernel(source, language), SEED, f"given: {file.name}")))
    return found


def built_in(problem: str) -> list[Named]:
    """The seeds of a built-in problem; none for a problem file."""
    if problem not in fitness.problem_names():
        return []
    return [
        (
            f"seed {seed.name}",
            Proposal(Kernel(seed.source, seed.language), SEED, f"{seed.name}: {seed.summary}"),
        )
        for seed in seeds(problem)
    ]


def drafted(card: ProblemCard) -> tuple[list[Named], str]:
    """A kernel written from the graph of the reference; where there is none, why."""
    if card.graph is None:
        return [], next(
            (note for note in card.notes if "traced" in note), "there is no graph of the reference"
        )
    try:
        kernel = draft(
            card.graph, [Argument(spec.name, spec.dtype) for spec in card.given.outputs], card.summary
        )
    except Undraftable as why:
        return [], f"{why} has no draft"
    return [("the draft", Proposal(kernel, SEED, "drafted from the reference's graph"))], ""


def admitted(target: Target, starting: Sequence[Named], problem: str) -> list[Proposal]:
    """The starting kernels, none twice; where there is no built-in one, a draft comes first.

    Raises:
        SettingsError: there is none, or one that its owner has to mend first.
    """
    lacking = ""
    if not any(words.startswith("seed ") for words, _ in starting):
        draft_first, lacking = drafted(target.card)
        starting = [*draft_first, *starting]
    kernels: dict[str, Proposal] = {}
    for words, proposal in starting:
        admission = target.admit(proposal.kernel)
        if not isinstance(admission, Admission):
            raise SettingsError(f"{words}: {admission.reason}")
        if words.startswith("--seeds") and not isinstance(built := target.build(admission), Built):
            raise SettingsError(f"{words}: {built.reason}; mend it, or leave it out")
        kernels.setdefault(admission.normal_sha, proposal)
    if not kernels:
        raise SettingsError(
            f"no starting kernel: {lacking}; give one with --seeds FILE "
            f"(`kernel-evo problems {problem} --signature` prints its entry)"
        )
    return list(kernels.values())
