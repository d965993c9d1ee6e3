"""Brings plans to one form, so that equal work has an equal hash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fitness.plan import CasePlan, Copy, Launch, Scalar, Step, View


def without_unused(case: CasePlan) -> CasePlan:
    """The same plan with its scratch numbered by first use, and without the storages that nothing uses."""
    kept = list(range(case.arguments))
    for view in (*(view for step in case.steps for view in views(step)), *case.outputs):
        if view.storage not in kept:
            kept.append(view.storage)
    new = {old: index for index, old in enumerate(kept)}
    return replace(
        case,
        storages=tuple(case.storages[old] for old in kept),
        steps=tuple(_renumbered(step, new) for step in case.steps),
        outputs=tuple(_moved(view, new) for view in case.outputs),
    )


def launched(case: CasePlan) -> Iterator[int]:
    """Numbers of the kernels that a plan launches, in order."""
    return (step.kernel for step in case.steps if isinstance(step, Launch))


def views(step: Step) -> Iterator[View]:
    """All views that a step names."""
    if isinstance(step, Launch):
        yield from (argument.view for argument in step.arguments if not isinstance(argument, Scalar))
        return
    if isinstance(step, Copy):
        yield step.source
    yield step.into


def _renumbered(step: Step, new: dict[int, int]) -> Step:
    if isinstance(step, Launch):
        arguments = tuple(
            argument if isinstance(argument, Scalar) else replace(argument, view=_moved(argument.view, new))
            for argument in step.arguments
        )
        return replace(step, arguments=arguments)
    if isinstance(step, Copy):
        return replace(step, into=_moved(step.into, new), source=_moved(step.source, new))
    return replace(step, into=_moved(step.into, new))


def _moved(view: View, new: dict[int, int]) -> View:
    return replace(view, storage=new[view.storage])
