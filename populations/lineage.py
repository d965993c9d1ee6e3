"""How a kernel came about: its ancestors, what each step gained, and what changed in the source."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from populations.verdict import Outcome


@dataclass(frozen=True)
class Birth:
    """What lineage needs to know of a kernel. ``rank`` is in log speed-up; None: not measured."""

    id: int
    parents: tuple[int, ...]
    operator: str
    rationale: str
    status: Outcome | None
    speedup: float | None
    rank: float | None


@dataclass(frozen=True)
class Step:
    """One ancestor, and what it gained.

    Attributes:
        birth: the kernel.
        gain: its rank less that of its best measured parent, in log speed-up; None where either is missing.
    """

    birth: Birth
    gain: float | None


def ancestry(birth: Callable[[int], Birth], id: int) -> list[Step]:
    """A kernel and all its ancestors, roots first, itself last.

    Args:
        birth: looks a kernel up by id; parents have smaller ids than their children.
        id: the kernel to explain.
    """
    family: dict[int, Birth] = {}
    unvisited = [id]
    while unvisited:
        one = unvisited.pop()
        if one not in family:
            family[one] = birth(one)
            unvisited += family[one].parents
    return [Step(family[one], _gain(family, one)) for one in sorted(family)]


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """The change between two sources as a unified diff; empty where they are equal."""
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm="")
    return "\n".join(changes)


def _gain(family: dict[int, Birth], id: int) -> float | None:
    rank = family[id].rank
    before = [family[parent].rank for parent in family[id].parents]
    known = [value for value in before if value is not None]
    return rank - max(known) if rank is not None and known else None
