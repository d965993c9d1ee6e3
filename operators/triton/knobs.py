"""New numbers and arguments: CONFIG and SPACE entries, kernel parameters, what launches pass for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import libcst as cst

from operators.triton.structure import Jit, Launch, Unit
from operators.triton.syntax import Edit, Edits

Knobs = Mapping[str, tuple[int, Sequence[int]]]


def constexprs(unit: Unit, jit: Jit, knobs: Knobs) -> Edits | None:
    """New tuning numbers that a kernel gets as compile-time parameters.

    Args:
        unit: the source.
        jit: a launched kernel.
        knobs: name -> (value, allowed values); names that are free in the source.

    Returns:
        The edits; None where another launch that passes all of CONFIG would not know the names.
    """
    if any(launch.config and launch.kernel is not jit for launch in unit.launches):
        return None
    found = list(numbers(unit, knobs))
    for name in knobs:
        text = f'CONFIG["{name}"]'
        passed = argument(unit, jit, name, partial(_unless_all, text=text))
        if passed is None:
            return None
        found += passed
    return tuple(found)


def _unless_all(launch: Launch, text: str) -> str | None:
    return None if launch.config else text


def options(unit: Unit, launches: Sequence[Launch], knobs: Knobs) -> Edits:
    """New tuning numbers that are options of a launch, such as ``num_warps``."""
    found = list(numbers(unit, knobs))
    for launch in launches:
        found += [passing(launch, unit, name, f'CONFIG["{name}"]') for name in knobs if not launch.config]
    return tuple(found)


def argument(
    unit: Unit,
    jit: Jit,
    name: str,
    value: Callable[[Launch], str | None],
    annotation: str = ": tl.constexpr",
) -> Edits | None:
    """A new last parameter of a kernel and what each launch passes for it; None: ``**CONFIG`` has it.

    Returns:
        The edits; None where a launch passes defaulted parameters by place.
    """
    plain = [p for p in jit.parameters if not p.default]
    if not plain or any(
        arg.keyword is None and not arg.star and i >= len(plain)
        for launch in unit.launches_of(jit)
        for i, arg in enumerate(launch.call.args)
    ):
        return None
    last = plain[-1].node
    at = unit.tree.end(last.annotation.annotation if last.annotation else last.name)
    found = [Edit(at, at, f", {name}{annotation}")]
    for launch in unit.launches_of(jit):
        text = value(launch)
        if text is not None:
            found.append(passing(launch, unit, name, text))
    return tuple(found)


def passing(launch: Launch, unit: Unit, name: str, text: str) -> Edit:
    """A further keyword argument of a launch, in front of ``**CONFIG``."""
    star = next((arg for arg in launch.call.args if arg.star == "**"), None)
    if star is not None:
        at = unit.tree.start(star)
        return Edit(at, at, f"{name}={text}, ")
    at = unit.tree.end(launch.call.args[-1]) if launch.call.args else unit.tree.end(launch.call) - 1
    last = launch.call.args[-1] if launch.call.args else None
    at = unit.tree.end(last.value) if last is not None else at
    return Edit(at, at, f", {name}={text}" if last is not None else f"{name}={text}")


def numbers(unit: Unit, knobs: Knobs) -> Edits:
    """Entries of CONFIG and SPACE, which are made where there are none."""
    values = {name: str(value) for name, (value, _) in knobs.items()}
    spaces = {name: str(list(allowed)) for name, (_, allowed) in knobs.items()}
    config, space = unit.literal("CONFIG"), unit.literal("SPACE")
    if config is None or space is None:
        return _made(unit, values, spaces, config)
    others = {name for launch in unit.launches for name in launch.config if name not in ("", "CONFIG")}
    more = [_entries(unit, found, values) for name in sorted(others) if (found := unit.literal(name))]
    return _entries(unit, config, values), _entries(unit, space, spaces), *more


def _made(unit: Unit, values: Mapping[str, str], spaces: Mapping[str, str], config: cst.Dict | None) -> Edits:
    lines = [] if config else [f"CONFIG = {_literal(values)}"]
    lines.append(f"SPACE = {_literal(spaces)}")
    imports = [
        line
        for line in unit.tree.module.body
        if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Import | cst.ImportFrom)
    ]
    at = unit.tree.lines(imports[-1])[1] if imports else 0
    if config is not None:
        holder = next(n for n in unit.tree.above(config) if isinstance(n, cst.SimpleStatementLine))
        at = unit.tree.lines(holder)[1]
        return _entries(unit, config, values), Edit(at, at, lines[0] + "\n")
    return (Edit(at, at, "\n" + "\n".join(lines) + "\n"),)


def _literal(entries: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in entries.items()) + "}"


def _entries(unit: Unit, literal: cst.Dict, entries: Mapping[str, str]) -> Edit:
    """The new entries behind the last one, on lines of their own where that one has a line of its own."""
    text = [f'"{name}": {value}' for name, value in entries.items()]
    if not literal.elements:
        at = unit.tree.end(literal) - 1
        return Edit(at, at, ", ".join(text))
    last = literal.elements[-1]
    assert isinstance(last, cst.DictElement)
    at, start = unit.tree.end(last.value), unit.tree.start(last.key)
    margin = unit.tree.data[unit.tree.data.rfind(b"\n", 0, start) + 1 : start].decode()
    gap = ", " if margin.strip() else f",\n{margin}"
    return Edit(at, at, "".join(gap + entry for entry in text))
