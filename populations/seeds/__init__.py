"""The starting kernels that ship with the project: a plain and an expert one for each built-in CPU problem.

They are package data, read as text: ``<problem>/<name>.cpp``. Nothing here is compiled or run.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

LANGUAGES = {".cpp": "cpp"}


@dataclass(frozen=True)
class Seed:
    """One starting kernel.

    Attributes:
        problem: name of the built-in problem that it solves.
        name: "plain" (what a competent person writes first) or "expert".
        language: kernel language, "cpp".
        path: where it lies in the package, e.g. "populations/seeds/softmax/plain.cpp".
        source: the whole text.
        summary: the first line of its opening comment.
    """

    problem: str
    name: str
    language: str
    path: str
    source: str
    summary: str


def problems_with_seeds() -> tuple[str, ...]:
    """Names of the problems that have at least one seed, in alphabetical order."""
    folders = (entry for entry in files(__name__).iterdir() if entry.is_dir())
    return tuple(sorted(entry.name for entry in folders if not entry.name.startswith("_")))


def seeds(problem: str) -> tuple[Seed, ...]:
    """Seeds of one problem, the plain one first; none where the problem is unknown."""
    if problem not in problems_with_seeds():
        return ()
    found = []
    for entry in files(__name__).joinpath(problem).iterdir():
        name, dot, suffix = entry.name.rpartition(".")
        if dot + suffix not in LANGUAGES:
            continue
        source = entry.read_text(encoding="utf-8")
        found.append(
            Seed(
                problem=problem,
                name=name,
                language=LANGUAGES[dot + suffix],
                path=f"populations/seeds/{problem}/{entry.name}",
                source=source,
                summary=source.partition("\n")[0].lstrip("/ "),
            )
        )
    return tuple(sorted(found, key=lambda seed: (seed.name != "plain", seed.name)))
