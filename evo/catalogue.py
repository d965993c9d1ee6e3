"""What there is to start from: built-in problems, their cards, their seeds."""

from __future__ import annotations

import ast
from contextlib import closing
from dataclasses import asdict, replace
from importlib.resources import files
from typing import Any

import fitness
from evo.settings import SettingsError, nearest
from fitness.card import Case, ProblemCard


def problems() -> list[dict[str, str]]:
    """Name and first line of every built-in problem, read without running it."""
    folder = files("fitness") / "problems"
    found = []
    for name in fitness.problem_names():
        text = ast.get_docstring(ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))) or ""
        found.append({"name": name, "summary": text.partition("\n")[0]})
    return found


def card(problem: str, target: str) -> ProblemCard:
    """The card of one problem; its file runs in the target's own process.

    Raises:
        FitnessError: the problem cannot be loaded or judged.
    """
    with (
        fitness.scratch_folder() as folder,
        closing(fitness.open_target(target, problem, folder=folder, seed=0, sandboxed=True)) as opened,
    ):
        return opened.card


def described(card: ProblemCard) -> dict[str, Any]:
    """A card as plain data, with the entry's signature."""
    return {**asdict(replace(card, graph=None)), "signature": card.signature()}


def lines(card: ProblemCard) -> list[tuple[str, str]]:
    """A card for people."""
    told = [
        ("problem", card.name),
        ("what", card.summary),
        ("tolerance", card.tolerance),
        ("policy", card.policy),
        *(("note", note) for note in card.notes),
        *(("case", _case(case)) for case in card.cases if not case.held_out),
        ("held out", f"{sum(case.held_out for case in card.cases)} further cases"),
    ]
    return told + [("entry" if n == 0 else "", line) for n, line in enumerate(card.signature().splitlines())]


def seeds(problem: str | None) -> list[dict[str, str]]:
    """The built-in starting kernels, of one problem or of all.

    Raises:
        SettingsError: no built-in problem has this name.
    """
    from populations.seeds import seeds as starting

    names = fitness.problem_names()
    if problem is not None and problem not in names:
        raise SettingsError(f"no built-in problem is named {problem!r}{nearest(problem, names)}")
    return [
        {
            "problem": seed.problem,
            "name": seed.name,
            "language": seed.language,
            "summary": seed.summary,
            "path": str(seed.path),
        }
        for name in ([problem] if problem else names)
        for seed in starting(name)
    ]


def _case(case: Case) -> str:
    shapes = ", ".join(f"{t.name} {t.dtype}{list(t.shape)}" for t in case.arguments)
    return f"{case.name}: {shapes}"
