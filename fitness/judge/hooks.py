"""A problem file's optional hooks: ``get_cases SIZES POLICY TOLERANCE BASELINES flops_and_bytes``."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fitness.card import Case
from fitness.judge.inputs import DISTRIBUTIONS
from fitness.judge.program import Program
from fitness.judge.source import Source
from fitness.judge.usercode import user_code
from fitness.target import ProblemError
from populations.verdict import POLICIES

ALWAYS, MAX_AUTOTUNE = ("eager", "torch.compile"), "max-autotune"  # baselines; the last where it pays
KEYS = ("name", "constants", "distribution", "held_out", "timed")


@dataclass(frozen=True)
class Plan:
    """A case before anything is known of its shapes; the fields are those of ``Case``."""

    name: str
    constants: dict[str, int]
    distribution: str | None = None
    held_out: bool = False
    derived: bool = False
    timed: bool = False


def declared_cases(program: Program, source: Source, seed: int) -> list[Plan]:
    """What ``get_cases(seed)`` declares; nothing where there is no such hook.

    Raises:
        ProblemError: it raises or returns something else than a list of cases.
    """
    hook = getattr(program.module, "get_cases", None)
    if hook is None:
        return []
    todo = "return a list of dictionaries with " + ", ".join(KEYS)
    with user_code(source.where, "get_cases(seed)", todo):
        found = hook(seed)
    if not isinstance(found, list | tuple) or not found:
        raise ProblemError(f"{source.where}: get_cases(seed) returns no list of cases; {todo}")
    plans = [_plan(entry, index, source, todo) for index, entry in enumerate(found)]
    names = [plan.name for plan in plans]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ProblemError(
            f"{source.where}: get_cases(seed) names two cases {twice!r}; give each a name of its own"
        )
    if plans[0].held_out:
        raise ProblemError(
            f"{source.where}: the first case is held out; put a visible one first, it is the given one"
        )
    if not any(plan.timed for plan in plans):
        plans[0] = replace(plans[0], timed=True)
    return plans


def declared_sizes(program: Program, source: Source, target: str) -> dict[str, int]:
    """The constants that ``SIZES`` gives for a target; none where there is no such hook.

    Raises:
        ProblemError: it is no dictionary of dictionaries of integers, or names an unknown constant.
    """
    todo = 'give {"cuda": {"ROWS": 8192}}: module-level integers by target'
    sizes = getattr(program.module, "SIZES", {})
    chosen = sizes.get(target, {}) if isinstance(sizes, Mapping) else None
    if not isinstance(chosen, Mapping) or not all(type(value) is int for value in chosen.values()):
        raise ProblemError(f"{source.where}: SIZES is {str(sizes)[:60]!r}; {todo}")
    for name in chosen:
        if name not in source.constants:
            hint = _nearest(name, source.constants)
            raise ProblemError(f"{source.where}: SIZES has {name!r}, no module-level integer; {hint}")
    return dict(chosen)


def _plan(entry: Any, index: int, source: Source, todo: str) -> Plan:
    place = f"{source.where}: case {index} of get_cases(seed)"
    if not isinstance(entry, Mapping):
        raise ProblemError(f"{place} is of type {type(entry).__name__}; {todo}")
    for key in entry:
        if key not in KEYS:
            raise ProblemError(f"{place} has an unknown key {key!r}; {_nearest(key, KEYS)}")
    constants = entry.get("constants", {})
    if not isinstance(constants, Mapping):
        raise ProblemError(
            f"{place}: constants is of type {type(constants).__name__}; give a dictionary of integers"
        )
    for name, value in constants.items():
        if name not in source.constants:
            hint = _nearest(name, source.constants)
            raise ProblemError(f"{place} overrides {name!r}, which is no module-level integer; {hint}")
        if type(value) is not int:
            raise ProblemError(f"{place}: {name} is {value!r}; give an integer")
    distribution = entry.get("distribution")
    if distribution is not None and distribution not in DISTRIBUTIONS:
        raise ProblemError(
            f"{place}: unknown distribution {distribution!r}; {_nearest(distribution, DISTRIBUTIONS)}"
        )
    default = ",".join(f"{name}={value}" for name, value in constants.items()) or "given"
    return Plan(
        name=str(entry.get("name", default)),
        constants=dict(constants),
        distribution=distribution,
        held_out=bool(entry.get("held_out", False)),
        timed=bool(entry.get("timed", False)),
    )


def declared_policy(program: Program) -> str | None:
    """``POLICY``, or None where the file has none.

    Raises:
        ProblemError: it is neither "warm" nor "cold".
    """
    policy = getattr(program.module, "POLICY", None)
    if policy is not None and policy not in POLICIES:
        raise ProblemError(
            f"{program.where}: POLICY is {policy!r}; set it to 'warm' or 'cold', or leave it out"
        )
    return policy


def check_tolerance(program: Program) -> None:
    """Refuse a ``TOLERANCE`` that can't be one.

    Raises:
        ProblemError: it is not a mapping, a sequence of them, or a function.
    """
    tolerance = getattr(program.module, "TOLERANCE", None)
    lines = tolerance if isinstance(tolerance, list | tuple) else [tolerance]
    if not (tolerance is None or callable(tolerance) or all(isinstance(line, Mapping) for line in lines)):
        raise ProblemError(
            f"{program.where}: TOLERANCE is {str(tolerance)[:60]!r}; give an operation of the table, "
            "{'atol': …, 'rtol': …}, or a function"
        )


def check_baselines(program: Program) -> None:
    """Refuse a ``BASELINES`` that can't be one.

    Raises:
        ProblemError: it is no dictionary of functions, or takes the name of a baseline that is always there.
    """
    named = getattr(program.module, "BASELINES", {})
    todo = 'give {"name": function}, called with the inputs and then the parameters'
    if not isinstance(named, Mapping) or not all(map(callable, named.values())):
        raise ProblemError(f"{program.where}: BASELINES is {str(named)[:60]!r}; {todo}")
    for name in named:
        if not isinstance(name, str) or name in (*ALWAYS, MAX_AUTOTUNE):
            raise ProblemError(f"{program.where}: BASELINES names one {name!r}; choose another name")


def with_work(program: Program, case: Case) -> Case:
    """The case with the FLOPs and bytes that ``flops_and_bytes(case)`` gives.

    Raises:
        ProblemError: the hook raises or returns something else than two numbers.
    """
    hook = getattr(program.module, "flops_and_bytes", None)
    if hook is None:
        return case
    todo = "return (flops, bytes), either may be None"
    with user_code(program.where, "flops_and_bytes(case)", todo):
        found = hook(case)
    pair: Sequence[Any] = found if isinstance(found, list | tuple) else ()
    if len(pair) != 2 or not all(part is None or (_number(part) and part >= 0) for part in pair):
        raise ProblemError(f"{program.where}: flops_and_bytes(case) returns {str(found)[:60]!r}; {todo}")
    flops, nbytes = pair
    return replace(
        case,
        flops=None if flops is None else int(flops),
        bytes=case.bytes if nbytes is None else int(nbytes),
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _nearest(name: object, known: Collection[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)
    return f"the nearest is {near[0]!r}" if near else "the file has none"
