"""Loading a problem: from a built-in name or the user's file to cases that can run, and the card of it all.

    problem = load("softmax", seed=1, cache_bytes=32 << 20)
    draw = problem.cases[0].draw(key)
    expected = problem.cases[0].reference(draw.inputs, draw.parameters)

A file that declares cases keeps them; from a plain one further shapes are derived. The user's code runs here,
trusted, and nothing of a candidate ever does.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fitness import problems
from fitness.card import Case, ProblemCard
from fitness.judge.bounds import describe
from fitness.judge.derive import derived_cases
from fitness.judge.hooks import (
    Plan,
    check_baselines,
    check_tolerance,
    declared_cases,
    declared_policy,
    declared_sizes,
    with_work,
)
from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.program import Program, imagined_signature
from fitness.judge.refill import Refill
from fitness.judge.signature import Signature
from fitness.judge.soundness import examine
from fitness.judge.source import Source, read
from fitness.judge.structure import Kind
from fitness.target import ProblemError
from populations.dtypes import FLOATS

__all__ = ["Draw", "LoadedCase", "Problem", "Refill", "load"]

SETS_IN_MEMORY = 8  # what judging takes, in argument sets: buffers, two pools, the float64 twins
EXAMINED_BYTES = 1 << 30  # a larger case is taken to be like the smallest one
GIVEN = "given"


@dataclass(frozen=True)
class Problem:
    """A problem that can be judged.

    Attributes:
        card: what the rest of the engine sees. Its first case is the given one, even where that does not fit
            this machine.
        cases: the cases that can run here, in the card's order.
    """

    card: ProblemCard
    cases: list[LoadedCase]

    @property
    def tolerance(self) -> Any:
        """``TOLERANCE`` of the given case, or None; each case has its own."""
        return self.cases[0].tolerance


def builtin_names() -> list[str]:
    """Names of the built-in problems."""
    return sorted(path.stem for path in _suite().glob("*.py") if not path.stem.startswith("_"))


def load(
    spec: str, *, seed: int, cache_bytes: int, memory_bytes: int | None = None, target: str = "cpu"
) -> Problem:
    """Load a problem and prove that its reference can be one.

    Args:
        spec: name of a built-in problem, or path of a file.
        seed: for ``get_cases``.
        cache_bytes: last-level cache, which decides the timing policy where the file declares none.
        memory_bytes: memory of this machine or device; None: ask the system.
        target: whose sizes to take, where the file gives ``SIZES``.

    Raises:
        ProblemError: it can't be loaded; one line that says what, where and what to do.
    """
    source, given = _sized(spec, target)
    policy = declared_policy(given)
    check_tolerance(given)
    check_baselines(given)
    declared = declared_cases(given, source, seed)
    plans = declared or [Plan(GIVEN, {}, timed=True)]
    cases, signature = _checked(source, plans)
    loaded, notes = _fitting(cases, (memory_bytes or _memory_bytes()) // 2)
    if loaded:
        loaded, remarks = _examined(loaded, bool(declared))
        notes += remarks
    if not declared:
        derived, remarks = _derived(source, signature, loaded)
        loaded += derived
        notes += remarks
    if not loaded:
        raise ProblemError(
            f"{source.where}: no case fits this machine; {'; '.join(notes)}; make its sizes smaller"
        )
    card = ProblemCard(
        name=source.path.stem,
        path=source.where,
        sha=source.sha,
        summary=source.summary,
        tolerance=describe(loaded[0].tolerance),
        policy=policy or ("warm" if 4 * signature.nbytes <= cache_bytes else "cold"),
        cases=_card_cases(cases[0][0], loaded),
        notes=tuple(notes),
    )
    return Problem(card, loaded)


def outline(spec: str, *, target: str, whole: bool) -> ProblemCard:
    """A problem's card in a target's sizes, unproven: nothing is computed and no device is needed.

    Args:
        spec: see ``load``.
        target: see ``load``.
        whole: with all declared cases, not just the given one.

    Raises:
        ProblemError: see ``load``.
    """
    source, given = _sized(spec, target)
    plans = declared_cases(given, source, seed=0) or [Plan(GIVEN, {}, timed=True)]
    return ProblemCard(
        name=source.path.stem,
        path=source.where,
        sha=source.sha,
        summary=source.summary,
        tolerance=describe(getattr(given.module, "TOLERANCE", None)),
        policy=declared_policy(given) or "cold",
        cases=tuple(_case(source, plan)[0] for plan in (plans if whole else plans[:1])),
    )


def _sized(spec: str, target: str) -> tuple[Source, Program]:
    """A problem's file with the sizes of a target, executed."""
    source = read(_path(spec))
    given = Program(source, {})
    sizes = declared_sizes(given, source, target)
    if not sizes:
        return source, given
    source = source.resized(sizes)
    return source, Program(source, {})


def _card_cases(given: Case, loaded: list[LoadedCase]) -> tuple[Case, ...]:
    """The given case first, also where it does not run, then the others that do."""
    runnable = [each.case for each in loaded]
    skipped = given.name not in {case.name for case in runnable}
    return (given, *runnable) if skipped else tuple(runnable)


def _checked(source: Source, plans: Sequence[Plan]) -> tuple[list[tuple[Case, Program]], Signature]:
    """Every planned case with its program, and the signature that all of them share.

    Raises:
        ProblemError: a case has other arguments than the first one, or an empty one.
    """
    cases: list[tuple[Case, Program]] = []
    signatures: list[Signature] = []
    for plan in plans:
        case, program, found = _case(source, plan)
        signatures.append(found)
        if not found.fits(signatures[0]):
            raise ProblemError(
                f"{source.where}: case {plan.name} has other arguments than the first one; "
                "let cases differ in extents alone"
            )
        empty = next((spec.name for spec in case.arguments if 0 in spec.shape), None)
        if empty is not None:
            raise ProblemError(
                f"{source.where}: case {plan.name}: {empty} is empty; give it at least one element"
            )
        cases.append((case, program))
    return cases, signatures[0]


def _fitting(cases: Sequence[tuple[Case, Program]], room: int) -> tuple[list[LoadedCase], list[str]]:
    """The cases whose sets fit into ``room`` bytes, and notes on the others."""
    loaded, notes = [], []
    for case, program in cases:
        needed = SETS_IN_MEMORY * sum(spec.nbytes for spec in case.arguments)
        if needed <= room:
            loaded.append(LoadedCase(program, case))
        else:
            notes.append(f"{case.name}: not run (needs {needed * 2 / 2**30:.0f} GB)")
    return loaded, notes


def _derived(
    source: Source, signature: Signature, loaded: Sequence[LoadedCase]
) -> tuple[list[LoadedCase], list[str]]:
    """Further cases of a file that declares none, and notes."""
    template = loaded[0] if loaded else None
    derived = derived_cases(source, signature, template)
    if not derived:
        return [], ["general: not checked (get_inputs() depends on no module-level size that can be changed)"]
    if template is not None:
        return derived, []
    derived[0], remarks = examine(derived[0])
    return _alike(derived, derived[0]), remarks


def _case(source: Source, plan: Plan) -> tuple[Case, Program, Signature]:
    program = Program(source, plan.constants)
    signature = imagined_signature(source, plan.constants) or program.signature()
    case = Case(
        name=plan.name,
        constants=plan.constants,
        distribution=plan.distribution,
        held_out=plan.held_out,
        derived=plan.derived,
        timed=plan.timed,
        inputs=signature.inputs,
        parameters=signature.parameters,
        outputs=signature.outputs,
        bytes=signature.nbytes,
        init=program.init_arguments(),
    )
    return with_work(program, case), program, signature


def _examined(loaded: list[LoadedCase], declared: bool) -> tuple[list[LoadedCase], list[str]]:
    """The cases after one of them was examined, and notes: the first, or the smallest where that is huge."""
    place = 0
    if declared and loaded[0].case.bytes > EXAMINED_BYTES:
        shown = (n for n, each in enumerate(loaded) if not each.case.held_out)
        place = min(shown, key=lambda n: loaded[n].case.bytes)
    first = loaded[place]
    notes = []
    if not declared and all(kind is Kind.CONSTANT for kind in first.kinds):
        if any(spec.dtype in FLOATS for spec in first.case.inputs):
            first = LoadedCase(first.program, replace(first.case, distribution="normal"))
            notes.append("get_inputs() always returns the same data: normal values are used instead")
        elif not any(spec.dtype in FLOATS for spec in first.case.parameters):
            todo = "draw it with torch.rand or alike"
            raise ProblemError(f"{first.program.where}: get_inputs() always returns the same data; {todo}")
    found, remarks = examine(first)
    return _alike([*loaded[:place], found, *loaded[place + 1 :]], found), notes + remarks


def _alike(cases: list[LoadedCase], found: LoadedCase) -> list[LoadedCase]:
    """All cases treated as one of them was found to need."""
    return [case if case is found else case.examined(found.precision, steady=found.steady) for case in cases]


def _path(spec: str) -> Path:
    names = builtin_names()
    if spec in names:
        return _suite() / f"{spec}.py"
    path = Path(spec).expanduser()
    if path.suffix == ".py" or os.sep in spec or path.exists():
        return path
    near = difflib.get_close_matches(spec, names, n=1, cutoff=0.0)
    hint = f"the nearest is {near[0]!r}; " if near else ""
    raise ProblemError(
        f"{spec}: no built-in problem of this name; {hint}give a path that ends in .py for a file"
    )


def _suite() -> Path:
    return Path(next(iter(problems.__path__)))


def _memory_bytes() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    return min(total, int(text)) if text.isdigit() else total
