"""How a foreign kernel becomes a genome: what ``@triton.autotune`` lists goes into CONFIG and SPACE."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import libcst as cst

from operators.proposal import Brief
from operators.triton.knobs import passing
from operators.triton.rewrite import rewrite
from operators.triton.structure import Jit, Unit, unit_of
from operators.triton.syntax import Edit, Edits, squeeze

DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
MOST = 4096  # configurations that are looked at
_OPERATIONS: Mapping[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class Unreadable(Exception):
    """A list of configurations that is no literal, nor comprehensions over such."""


def adopt(source: str) -> str:
    """The source with CONFIG and SPACE in place of ``@triton.autotune``; unchanged where it can't be read."""
    try:
        unit = unit_of(source)
    except (cst.ParserSyntaxError, UnicodeError):
        return source
    edits = _adopted(unit)
    return unit.tree.edited(edits) if edits else source


@rewrite(
    "adopt_autotune",
    needs="`@triton.autotune` with configurations that can be read off",
    reason="the tuner moves the numbers one by one, and what is measured is one configuration",
)
def adopt_autotune(unit: Unit, _: Brief) -> Iterator[Edits]:
    """For kernels that came in without ``adopt``."""
    if edits := _adopted(unit):
        yield edits


def _adopted(unit: Unit) -> Edits:
    found = {}
    for jit in unit.jits:
        decorator = _autotune(unit, jit)
        if decorator is None:
            continue
        try:
            configs = _configs(unit, decorator)
        except Unreadable:
            return ()
        if not configs or not all(launch.clear for launch in unit.launches_of(jit)):
            return ()
        found[jit] = (decorator, configs)
    if not found or unit.literal("CONFIG") or unit.literal("SPACE"):
        return ()
    keys = [name for _, configs in found.values() for name in configs[0]]
    config: dict[str, object] = {}
    space: dict[str, list[object]] = {}
    edits: list[Edit] = []
    for jit, (decorator, configs) in found.items():
        edits.append(unit.tree.drop(decorator))
        for name in configs[0]:
            key = name if keys.count(name) == 1 else f"{jit.name}_{name}"
            values = list(dict.fromkeys(each.get(name, DEFAULTS.get(name)) for each in configs))
            config[key] = configs[0][name]
            if all(type(value) is int for value in values):
                space[key] = sorted(values)  # type: ignore[type-var]
            edits += [passing(at, unit, name, f'CONFIG["{key}"]') for at in unit.launches_of(jit)]
    return _lines(unit, config, space), *edits


def _lines(unit: Unit, config: Mapping[str, object], space: Mapping[str, list[object]]) -> Edit:
    imports = [
        line
        for line in unit.tree.module.body
        if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Import | cst.ImportFrom)
    ]
    at = unit.tree.lines(imports[-1])[1] if imports else 0
    texts = [
        name + " = {\n" + "".join(f'    "{key}": {value!r},\n' for key, value in entries.items()) + "}\n"
        for name, entries in (("CONFIG", config), ("SPACE", space))
    ]
    return Edit(at, at, "\n" + "".join(texts))


def _autotune(unit: Unit, jit: Jit) -> cst.Decorator | None:
    for decorator in jit.node.decorators:
        node = decorator.decorator
        if isinstance(node, cst.Call) and squeeze(unit.tree.text(node.func)) in (
            "triton.autotune",
            "autotune",
        ):
            return decorator
    return None


def _configs(unit: Unit, decorator: cst.Decorator) -> list[dict[str, Any]]:
    """What each configuration sets: parameters and launch options by name."""
    call = ast.parse(unit.tree.text(decorator.decorator), mode="eval").body
    assert isinstance(call, ast.Call)
    node = next((k.value for k in call.keywords if k.arg == "configs"), call.args[0] if call.args else None)
    module = ast.parse(unit.tree.source)
    known = {
        target.id: line.value
        for line in module.body
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name)
    }
    if isinstance(node, ast.Name):
        node = known.get(node.id)
    if node is None:
        raise Unreadable
    found = list(islice(_each(node, known, {}), MOST))
    names = {name for config in found for name in config}
    return [{name: config.get(name, DEFAULTS.get(name)) for name in sorted(names)} for config in found]


def _each(
    node: ast.expr, known: Mapping[str, ast.expr], values: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The configurations of a list, a sum of lists, or a comprehension without conditions."""
    if isinstance(node, ast.List):
        for item in node.elts:
            yield _config(item, known, values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _each(node.left, known, values)
        yield from _each(node.right, known, values)
    elif isinstance(node, ast.ListComp):
        for bound in _bound(node.generators, known, values):
            yield _config(node.elt, known, bound)
    else:
        raise Unreadable


def _bound(
    loops: list[ast.comprehension], known: Mapping[str, ast.expr], values: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    if not loops:
        yield values
        return
    loop = loops[0]
    if loop.ifs or not isinstance(loop.target, ast.Name):
        raise Unreadable
    items = _value(loop.iter, known, values)
    if not isinstance(items, list):
        raise Unreadable
    for item in items:
        yield from _bound(loops[1:], known, {**values, loop.target.id: item})


def _config(node: ast.expr, known: Mapping[str, ast.expr], values: Mapping[str, Any]) -> dict[str, Any]:
    """What one ``triton.Config({…}, num_warps=…)`` sets."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rsplit(".", 1)[-1] != "Config":
        raise Unreadable
    given = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "kwargs"), None)
    if not isinstance(given, ast.Dict) or len(node.args) > 1:
        raise Unreadable
    found = {}
    for key, value in zip(given.keys, given.values, strict=True):
        if not isinstance(key, ast.Constant):
            raise Unreadable
        found[str(key.value)] = _value(value, known, values)
    options = ("num_warps", "num_stages", "num_ctas", "maxnreg")
    return found | {k.arg: _value(k.value, known, values) for k in node.keywords if k.arg in options}


def _value(node: ast.expr, known: Mapping[str, ast.expr], values: Mapping[str, Any]) -> Any:
    """A literal, a list of such, a name for one, or plain arithmetic."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if isinstance(node, ast.Name) and node.id in known:
        return _value(known[node.id], {name: v for name, v in known.items() if name != node.id}, values)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, known, values) for item in node.elts]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        sides = (_value(node.left, known, values), _value(node.right, known, values))
        if all(type(side) is int for side in sides) and (sides[1] or not isinstance(node.op, ast.FloorDiv)):
            return _OPERATIONS[type(node.op)](*sides)
    raise Unreadable


ADOPTING = (adopt_autotune,)
