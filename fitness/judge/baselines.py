"""What a kernel must beat, gated and timed like a candidate.

PyTorch eager, ``torch.compile``, and what the problem file names: a vendor's library, an expert's kernel.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch

from fitness.judge.course import Course
from fitness.judge.gate import describe, judged
from fitness.judge.hooks import MAX_AUTOTUNE
from fitness.judge.loaded import LoadedCase
from fitness.judge.place import in_place, place
from fitness.judge.usercode import user_code
from fitness.target import ProblemError

Call = Callable[[], object]


def calls(
    name: str, loaded: LoadedCase, sets: Sequence[tuple[list[torch.Tensor], list[torch.Tensor]]]
) -> list[Call]:
    """One ready call per argument set, reading the set's own buffers.

    Args:
        name: one of ``hooks.ALWAYS``, ``MAX_AUTOTUNE``, or one that the problem file names.
        loaded: the case.
        sets: inputs and parameters of each set.
    """
    if name == "eager":
        return [_placed(partial(loaded.bind(parameters), *inputs)) for inputs, parameters in sets]
    if name in loaded.named_baselines:
        named = loaded.named_baselines[name]
        return [_placed(partial(named, *inputs, *parameters)) for inputs, parameters in sets]
    mode = "max-autotune-no-cudagraphs" if name == MAX_AUTOTUNE else None
    compiled = torch.compile(loaded.functional, dynamic=False, mode=mode)
    return [_placed(partial(compiled, *inputs, *parameters)) for inputs, parameters in sets]


def _placed(call: Call) -> Call:
    """A call of the user's code that makes its tensors where the judge does; free of cost on a CPU."""
    if place().type == "cpu":
        return call

    def placed() -> object:
        with in_place():
            return call()

    return placed


def warmed_up(name: str, loaded: LoadedCase, course: Course) -> list[Call]:
    """A baseline over a course's buffers, one call per set, compiled and run once."""
    course.renew(course.count)
    inputs = len(loaded.case.inputs)
    tensors = [course.sets.inputs(index) for index in range(course.count)]
    ready = calls(name, loaded, [(each[:inputs], each[inputs:]) for each in tensors])
    for call in ready:
        call()
    return ready


def rough_seconds(loaded: LoadedCase) -> float:
    """About how long one eager call takes, to choose the length of a block: the least of three."""
    draw = loaded.draw("rough")
    call = calls("eager", loaded, [(draw.inputs, draw.parameters)])[0]
    call()
    return min(timeit.repeat(call, number=1, repeat=3))


@dataclass(frozen=True)
class Standing:
    """What the gate said of a baseline on a case: whether it runs, whether it counts, and why it does not."""

    runs: bool
    counts: bool
    reason: str | None = None


def standing(name: str, loaded: LoadedCase, key: str) -> Standing:
    """A baseline through the same gate as a candidate; one that fails is shown, not counted."""
    draw = loaded.draw(key)
    guard: AbstractContextManager[object] = nullcontext()
    if name in loaded.named_baselines:
        guard = user_code(loaded.program.where, f"BASELINES[{name!r}]", "mend it or leave it out")
    try:
        with guard:
            found = calls(name, loaded, [(draw.inputs, draw.parameters)])[0]()
    except ProblemError as why:
        return Standing(False, False, str(why))
    except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as why:
        return Standing(False, False, f"did not run: {str(why).splitlines()[0][:160]}")
    comparison = judged(loaded, draw, loaded.flatten(found))
    if comparison.max_error <= 1.0:
        return Standing(True, True)
    return Standing(True, False, f"fails the gate: {describe(comparison, loaded.case.name)}")
