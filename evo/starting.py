"""The kernels a run starts from: the user's files, and the built-in seeds or a draft of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import fitness
from evo.course import SEED
from evo.settings import SettingsError
from fitness.card import ProblemCard
from fitness.target import Admission, Built, Target
from operators.draft import Argument, Undraftable, draft
from operators.proposal import Proposal
from operators.triton import adopt
from populations.kernel import Kernel
from populations.seeds import seeds
from populations.text import read_text


class Origin(Enum):
    """Who a starting kernel is from."""

    GIVEN = auto()  # by the user: what is wrong with it, the user has to mend
    BUILT_IN = auto()
    DRAFTED = auto()  # by a program: where it is refused, the run does without


@dataclass(frozen=True)
class Start:
    """A starting kernel; ``words`` name it in a message."""

    origin: Origin
    words: str
    proposal: Proposal


def given(files: Sequence[Path], language: str) -> list[Start]:
    """The user's starting kernels.

    Raises:
        SettingsError: a file that cannot be read.
    """
    found = []
    for file in files:
        try:
            source = read_text(file)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(f"--seeds {file} cannot be read: {why}; check the path") from None
        if language == "triton":
            source = adopt(source)  # configurations of an autotuner become numbers that the search tunes
        proposal = Proposal(Kernel(source, language), SEED, f"given: {file.name}")
        found.append(Start(Origin.GIVEN, f"--seeds {file}", proposal))
    return found


def built_in(problem: str, language: str) -> list[Start]:
    """The seeds of a built-in problem in one language; none for a problem file."""
    if problem not in fitness.problem_names():
        return []
    return [
        Start(
            Origin.BUILT_IN,
            f"seed {seed.name}",
            Proposal(Kernel(seed.source, seed.language), SEED, f"{seed.name}: {seed.summary}"),
        )
        for seed in seeds(problem, language)
    ]


def drafted(card: ProblemCard) -> tuple[list[Start], str]:
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
    proposal = Proposal(kernel, SEED, "drafted from the reference's graph")
    return [Start(Origin.DRAFTED, "the draft", proposal)], ""


def admitted(
    target: Target,
    starting: Sequence[Start],
    problem: str,
    language: str = "cpp",
    drafts: bool = False,
) -> list[Proposal]:
    """The starting kernels, none twice; where there is no built-in one, a draft comes first.

    Args:
        target: admits and builds them.
        starting: those that there are.
        problem: its name or path.
        language: of the kernels.
        drafts: whether a model drafts the first kernels where there are none.

    Raises:
        SettingsError: there is none, or one that its owner has to mend first.
    """
    lacking = ""
    if not any(start.origin is Origin.BUILT_IN for start in starting):
        draft_first, lacking = (
            drafted(target.card) if language == "cpp" else ([], "drafts are written in C++ alone")
        )
        starting = [*draft_first, *starting]
    kernels: dict[str, Proposal] = {}
    for start in starting:
        admission = target.admit(start.proposal.kernel)
        if not isinstance(admission, Admission):
            if start.origin is Origin.DRAFTED:
                lacking = f"the draft of the reference was refused ({admission.reason})"
                continue
            raise SettingsError(f"{start.words}: {admission.reason}")
        if start.origin is Origin.GIVEN and not isinstance(built := target.build(admission), Built):
            raise SettingsError(f"{start.words}: {built.reason}; mend it, or leave it out")
        kernels.setdefault(admission.normal_sha, start.proposal)
    if not kernels and not drafts:
        raise SettingsError(
            f"no starting kernel: {lacking}; give one with --seeds FILE, or name a --model that writes one "
            f"(`kernel-evo problems {problem} --signature` prints its entry)"
        )
    return list(kernels.values())
