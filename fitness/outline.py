"""Cards of problems in the sizes that they have on a target, without opening it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from fitness.card import ProblemCard
from fitness.judging import OPEN_S, Judge, passed_on
from fitness.verify import scratch_folder


def outlines(problems: Sequence[str], target: str, *, whole: bool = True) -> list[ProblemCard]:
    """Cards of which nothing was run: no device is needed, and nothing is proven of the problems.

    Args:
        problems: names of built-in problems, or paths of problem files.
        target: "cpu" or "cuda".
        whole: with all declared cases, not just the given one.

    Raises:
        FitnessError: a problem cannot be read.
    """
    request = {"do": "outline", "target": target, "problems": list(problems), "whole": whole}
    with scratch_folder() as folder:
        judge = Judge(folder / "judge.log", passed_on())
        try:
            found = judge.ask(request, OPEN_S)
        finally:
            judge.close()
    return TypeAdapter(list[ProblemCard]).validate_python(found)
