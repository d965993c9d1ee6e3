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

GPU = "cuda"
NOMINAL = "nominal H200"  # no promise of any one card: the judge measures its own
NOMINAL_BYTES_PER_S, NOMINAL_FLOPS_PER_S = 4.3e12, 790e12
FLOAT32_SHARE = 1 / 6  # of the rate: a float32 product takes six bfloat16 ones


def problems(target: str = "auto") -> list[dict[str, Any]]:
    """Name and first line of every built-in problem; for a GPU also its size and floor there."""
    folder = files("fitness") / "problems"
    found: list[dict[str, Any]] = []
    for name in fitness.problem_names():
        text = ast.get_docstring(ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))) or ""
        found.append({"name": name, "summary": text.partition("\n")[0]})
    if target != GPU:
        return found
    cards = fitness.outlines([each["name"] for each in found], GPU, whole=False)
    return [{**each, **floor(card.given)} for each, card in zip(found, cards, strict=True)]


def rows(listed: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The list for people."""
    sized = ((p["case"], p["dtype"], f"{p['floor_us']:.0f} us") if "case" in p else () for p in listed)
    return [(p["name"], *size, p["summary"]) for p, size in zip(listed, sized, strict=True)]


def floor(case: Case) -> dict[str, Any]:
    """What a case moves and computes, and the time that no kernel beats on a GPU of nominal rates."""
    narrow = any(spec.dtype in ("bfloat16", "float16") for spec in case.inputs)
    moving = case.bytes / NOMINAL_BYTES_PER_S
    computing = (case.flops or 0) / (NOMINAL_FLOPS_PER_S * (1 if narrow else FLOAT32_SHARE))
    return {
        "case": case.name,
        "dtype": case.inputs[0].dtype,
        "bytes": case.bytes,
        "flops": case.flops,
        "floor_us": 1e6 * max(moving, computing),
        "limited_by": "bytes" if moving >= computing else "operations",
        "floor_of": NOMINAL,
    }


def card(problem: str, target: str) -> ProblemCard:
    """The card of one problem; its file runs in the target's own process. A GPU need not be there for that.

    Raises:
        FitnessError: the problem cannot be loaded or judged.
    """
    if target == GPU:
        return fitness.outlines([problem], GPU)[0]
    with (
        fitness.scratch_folder() as folder,
        closing(fitness.open_target(target, problem, folder=folder, seed=0, sandboxed=True)) as opened,
    ):
        return opened.card


def described(card: ProblemCard, target: str = "auto") -> dict[str, Any]:
    """A card as plain data, with the entry's signature, or on a GPU with the floor."""
    if target == GPU:
        return {**asdict(replace(card, graph=None)), "floor": floor(card.given)}
    return {**asdict(replace(card, graph=None)), "signature": card.signature()}


def lines(card: ProblemCard, target: str = "auto") -> list[tuple[str, str]]:
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
    if target == GPU:
        told += _floor_lines(card.given)
    defined = entry(card, target).splitlines()
    return told + [("entry" if n == 0 else "", line) for n, line in enumerate(defined)]


def entry(card: ProblemCard, target: str = "auto") -> str:
    """What a kernel must define: a C++ function, or on a GPU a Python one."""
    if target != GPU:
        return card.signature()
    arguments = ", ".join(t.name for t in card.given.inputs + card.given.parameters)
    return f"def kernel_function({arguments}):  # returns {', '.join(t.name for t in card.given.outputs)}"


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


def _floor_lines(case: Case) -> list[tuple[str, str]]:
    told = floor(case)
    rates = f"{NOMINAL_BYTES_PER_S / 1e12:g} TB/s and {NOMINAL_FLOPS_PER_S / 1e12:g} TFLOP/s"
    return [
        ("work", f"{case.bytes / 1e6:.1f} MB, {(case.flops or 0) / 1e9:.1f} GFLOP"),
        ("floor", f"{told['floor_us']:.0f} us, by its {told['limited_by']}, at {rates} ({NOMINAL})"),
    ]


def _case(case: Case) -> str:
    shapes = ", ".join(f"{t.name} {t.dtype}{list(t.shape)}" for t in case.arguments)
    return f"{case.name}: {shapes}"
