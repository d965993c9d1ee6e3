"""The starting kernels that ship with the project: for each built-in problem at least one of an expert's.

They are package data, read as text: ``<problem>/<name>.cpp`` for C++, ``<problem>/<name>.py`` for Triton.
Nothing here is compiled or run.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

LANGUAGES = {".cpp": "cpp", ".py": "triton"}


@dataclass(frozen=True)
class Seed:
    """One starting kernel.

    Attributes:
        problem: name of the built-in problem that it solves.
        name: "plain" (what a competent person writes first), "expert", or the name of a design.
        language: kernel language, "cpp" or "triton".
        path: where it lies in the package, e.g. "populations/seeds/softmax/plain.cpp".
        source: the whole text.
        summary: the first line of its opening comment or docstring.
    """

    problem: str
    name: str
    language: str
    path: str
    source: str
    summary: str


def problems_with_seeds(language: str | None = None) -> tuple[str, ...]:
    """Names of the problems that have at least one seed (in one language), in alphabetical order."""
    return tuple(problem for problem in _folders() if seeds(problem, language))


def seeds(problem: str, language: str | None = None) -> tuple[Seed, ...]:
    """Seeds of one problem, the plain one first; none where the problem is unknown.

    Args:
        problem: name of a built-in problem.
        language: "cpp" or "triton"; None for all.
    """
    if problem not in _folders():
        return ()
    found = []
    for entry in files(__name__).joinpath(problem).iterdir():
        name, dot, suffix = entry.name.rpartition(".")
        written_in = LANGUAGES.get(dot + suffix)
        if written_in is None or language not in (None, written_in):
            continue
        source = entry.read_text(encoding="utf-8")
        found.append(
            Seed(
                problem=problem,
                name=name,
                language=written_in,
                path=f"populations/seeds/{problem}/{entry.name}",
                source=source,
                summary=source.partition("\n")[0].strip('/" '),
            )
        )
    return tuple(sorted(found, key=lambda seed: (seed.name != "plain", seed.name)))


def _folders() -> tuple[str, ...]:
    folders = (entry for entry in files(__name__).iterdir() if entry.is_dir())
    return tuple(sorted(entry.name for entry in folders if not entry.name.startswith("_")))
