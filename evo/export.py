"""Write a kernel to a file: its source as measured, under a comment that says where it comes from."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from pydantic import TypeAdapter

from fitness.card import Case, ProblemCard
from fitness.cpp import FLAGS
from populations import folder
from populations.dtypes import C_TYPES
from populations.export_check import ExportCheck
from populations.folder import RunError
from populations.kernel import Kernel
from populations.run import Member, Run
from populations.verdict import Outcome, Stage, Verdict

_RIGHT = (Outcome.CORRECT, Outcome.MEASURED)


def export(run: Run, id: int | str, file: Path) -> Member:
    """Write one kernel of a run to a file.

    A kernel that is not known to be right for all shapes gets a guard, which ends the program where the
    shapes are others than those it was verified for. ``verify`` and ``--seeds`` take the file either way.

    Args:
        run: where it is from.
        id: its number, or "best".
        file: where to; replaced if it exists.

    Raises:
        RunError: there is no such kernel, it is wrong, or the file cannot be written.
    """
    member = run.get(id)
    verdict = member.verdict
    if verdict is None or verdict.status not in _RIGHT:
        what = verdict.status if verdict else "not judged yet"
        raise RunError(
            f"kernel {member.id} of run {run.path} is {what}: only kernels that passed the gate are exported "
            f"(`kernel-evo top {run.path}` lists them)"
        )
    card = TypeAdapter(ProblemCard).validate_python(run.card)
    text = _header(run, member, verdict, card) + body(member.kernel, verdict, card, promoted=member.promoted)
    if file.resolve() in {(run.path / name).resolve() for name in folder.FILES}:
        raise RunError(f"{file} is a file of the run itself; name another file with -o")
    try:
        _replace(file, text)
    except OSError as error:
        raise RunError(f"{file} cannot be written: {error.strerror}; name another file with -o") from None
    return member


def _replace(file: Path, text: str) -> None:
    """Write all of it or leave what was there; a pipe or a device is written to as it is."""
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
        return
    whole = file.resolve()  # the file behind a link, not the link
    draft = whole.with_name(f".{whole.name[:200]}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(whole)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _header(run: Run, member: Member, verdict: Verdict, card: ProblemCard) -> str:
    machine = run.calibration.machine if run.calibration else {}
    lineage = " -> ".join(f"{step.birth.id} {step.birth.operator}" for step in run.lineage(member.id))
    lines = [
        f"Evolved by kernel-evo: kernel {member.id} of run {run.path.name}",
        f"problem   {card.name}",
        f"machine   {', '.join(f'{key} {value}' for key, value in machine.items())}",
        f"speed-up  {_speed(verdict, card)}",
        f"general   {_general(verdict)}",
        *([f"build     g++ {' '.join(FLAGS)} -o kernel.so kernel.cpp"] if member.language == "cpp" else []),
        f"lineage   {lineage}",
        f"source    sha256 {member.source_sha}",
        f"verifier  {verdict.verifier}",
    ]
    mark = "//" if member.language == "cpp" else "#"
    return "".join(f"{mark} {_one_line(line)}\n" for line in lines) + "\n"


def _speed(verdict: Verdict, card: ProblemCard) -> str:
    if verdict.speedup is None:
        return "not timed"
    baselines = sorted({t.baseline for c in verdict.cases for t in c.timings if t.policy == card.policy})
    claim = f"{verdict.speedup:.3f}x over {' and '.join(baselines)} ({card.policy})"
    if verdict.fitness is None:
        return f"{claim}, not confirmed"
    return f"{claim}, at least {math.exp(verdict.fitness):.3f}x with 95 % confidence"


def _general(verdict: Verdict) -> str:
    if verdict.general is None:
        return "not tried"
    return "yes" if verdict.general else f"no, it fails on {verdict.not_general}"


def body(kernel: Kernel, verdict: Verdict, card: ProblemCard, *, promoted: bool) -> str:
    """What is exported of a kernel: its source, guarded unless every shape of the problem was verified.

    Args:
        kernel: the kernel.
        verdict: its latest one.
        card: of its problem.
        promoted: whether it was measured again for a claim.
    """
    derived = any(case.derived for case in card.cases)
    if verdict.general or (verdict.general is None and promoted and not derived):
        return kernel.source
    passed = cases_passed(verdict)
    cases = [case for case in card.cases if case.name in passed] or [card.given]
    guarded = _guarded if kernel.language == "cpp" else _guarded_python
    return guarded(kernel.source, cases, card)


def cases_passed(verdict: Verdict) -> set[str]:
    """Names of the cases that a kernel is right on."""
    return {case.name for case in verdict.cases if case.status in _RIGHT}


def refused(verdict: Verdict, check: ExportCheck) -> Verdict:
    """The verdict on a kernel whose exported file does other things than what was measured."""
    return Verdict(
        Outcome.INCORRECT,
        Stage.PROMOTION_GATE,
        f"what is exported is not what was measured: {check.reason}",
        isolation=verdict.isolation,
        numerics=verdict.numerics,
        verifier=verdict.verifier,
        notes=verdict.notes,
    )


def _guarded_python(source: str, cases: list[Case], card: ProblemCard) -> str:
    """The same for a Triton module: its entry, behind one that lets only verified shapes through."""
    model = re.search(r"^class ModelNew\b", source, re.MULTILINE)
    read = [case.inputs if model else (*case.inputs, *case.parameters) for case in cases]
    rows = sorted({tuple(argument.shape for argument in arguments) for arguments in read})
    entry, owner = ("ModelNew.forward", "self, ") if model else ("kernel_function", "")
    message = f"this kernel was verified for {len(rows)} shape(s) of {_one_line(card.name)} only: "
    shapes = "".join(f"    {row!r},\n" for row in rows)
    bound = f"{entry} = _guarded\n" if model else "kernel_function = _guarded\n"
    return f"""{source.rstrip()}


VERIFIED = (  # shapes of the tensors that the entry is called on
{shapes})
_unguarded = {entry}


def _guarded({owner}*tensors):
    shapes = tuple(tuple(tensor.shape) for tensor in tensors)
    if shapes not in VERIFIED:
        raise ValueError({message!r} + str(VERIFIED))
    return _unguarded({owner}*tensors)


{bound}"""


def _guarded(source: str, cases: list[Case], card: ProblemCard) -> str:
    """The entry of a C++ kernel renamed, and a new one that lets only verified shapes through.

    It uses no header: a kernel may neither print nor abort, and an export has to be admitted as one.
    """
    given = card.given
    arguments = [*given.inputs, *given.parameters, *given.outputs]
    pointers = ", ".join(argument.name for argument in arguments)
    written = len(given.outputs)
    declared = ", ".join(
        f"{'' if n >= len(arguments) - written else 'const '}{C_TYPES[argument.dtype]}* {argument.name}"
        for n, argument in enumerate(arguments)
    )
    rows = sorted(
        {tuple(extent for argument in case.arguments for extent in argument.shape) for case in cases}
    )
    tests = "\n".join(
        f"    if ({' && '.join(f'shapes[{n}] == {extent}' for n, extent in enumerate(row)) or 'true'}) "
        f"return kernel_function_unguarded({pointers}, shapes);"
        for row in rows
    )
    name = _one_line(card.name)
    message = f"this kernel was verified for {len(rows)} shape(s) of {name} only, and these are others"
    return f"""#define kernel_function kernel_function_unguarded
{source.rstrip()}
#undef kernel_function

#include <cstdint>

extern "C" void kernel_function({declared}, const int64_t* shapes) {{
{tests}
    __builtin_trap();  // {message}
}}
"""


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n\\]+", " ", text)
