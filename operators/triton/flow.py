"""What code in a jit function reads and writes, as far as the text says."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from operators.triton.structure import Jit, Loop, Unit
from operators.triton.syntax import squeeze

_LIBRARY = re.compile(r"(tl|triton\.language|libdevice)\.")


def called(unit: Unit, call: cst.Call) -> str:
    """The last part of a called function's name: "exp" for ``tl.exp(x)``."""
    return squeeze(unit.tree.text(call.func)).rsplit(".", 1)[-1]


def calls(unit: Unit, node: cst.CSTNode, *names: str) -> list[cst.Call]:
    """Calls of Triton's functions by these names, such as "load"; a descriptor's own ``load`` is none."""
    key = ("calls", node, names)
    if key not in unit.known:
        unit.known[key] = [
            call
            for call in unit.tree.find(node, cst.Call)
            if called(unit, call) in names and _LIBRARY.match(squeeze(unit.tree.text(call.func)))
        ]
    return list(unit.known[key])


def argument_of(call: cst.Call, name: str, place: int | None = None) -> cst.Arg | None:
    """A call's argument by its name, or by its place."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg
    plain = [arg for arg in call.args if arg.keyword is None and not arg.star]
    return plain[place] if place is not None and place < len(plain) else None


def reads(unit: Unit, node: cst.CSTNode) -> frozenset[str]:
    """Names whose value a piece of code may use."""
    key = ("reads", node)
    if key not in unit.known:
        names = (name for name in name_nodes(unit, node) if not _is_target(unit, name, node))
        unit.known[key] = frozenset(name.value for name in names)
    result: frozenset[str] = unit.known[key]
    return result


def writes(unit: Unit, node: cst.CSTNode) -> frozenset[str]:
    """Names that a piece of code binds."""
    key = ("writes", node)
    if key not in unit.known:
        found: set[str] = set()
        binders = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)
        for holder in unit.tree.below(node):
            if isinstance(holder, binders):
                found |= {name.value for name in bound_names(unit, holder.target)}
        unit.known[key] = frozenset(found)
    result: frozenset[str] = unit.known[key]
    return result


def bound_names(unit: Unit, target: cst.CSTNode) -> list[cst.Name]:
    """The names in the target of an assignment; a subscript binds none."""
    return unit.tree.find(target, cst.Name) if isinstance(target, cst.Name | cst.Tuple | cst.List) else []


def name_nodes(unit: Unit, node: cst.CSTNode, name: str | None = None) -> list[cst.Name]:
    """The names in a piece of code that stand for values; attributes and keywords do not."""
    found = []
    for item in unit.tree.find(node, cst.Name):
        holder = next(unit.tree.above(item))
        if isinstance(holder, cst.Attribute) and holder.attr is item:
            continue
        if isinstance(holder, cst.Arg) and holder.keyword is item:
            continue
        if name is None or item.value == name:
            found.append(item)
    return found


def _is_target(unit: Unit, name: cst.Name, within: cst.CSTNode) -> bool:
    for above in unit.tree.above(name):
        if isinstance(above, cst.AssignTarget):
            return True
        if isinstance(above, cst.AugAssign):
            return False
        if isinstance(above, cst.For):
            return unit.tree.covers(above.target, name)
        if above is within or isinstance(above, cst.BaseStatement | cst.Call | cst.Subscript):
            return False
    return False


def assigned(statement: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """The name and the value of a line ``name = value``."""
    small = only(statement)
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        return (target.value, small.value) if isinstance(target, cst.Name) else None
    return None


def only(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The one small statement of a line."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        return statement.body[0]
    return None


def accumulated(unit: Unit, statement: cst.CSTNode) -> tuple[str, str, cst.BaseExpression] | None:
    """Name, "+" or "max", and the added value of ``a += e``, ``a = a + e`` or ``a = tl.maximum(a, e)``."""
    small = only(statement)
    if isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        plus = isinstance(small.operator, cst.AddAssign)
        return (small.target.value, "+", small.value) if plus else None
    found = assigned(statement)
    if found is None:
        return None
    name, value = found
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        sides = (value.left, value.right)
        kind = "+"
    elif isinstance(value, cst.Call) and called(unit, value) == "maximum" and len(value.args) == 2:
        sides = (value.args[0].value, value.args[1].value)
        kind = "max"
    else:
        return None
    for own, other in (sides, sides[::-1]):
        if isinstance(own, cst.Name) and own.value == name and name not in reads(unit, other):
            return name, kind, other
    return None


def effects(unit: Unit, node: cst.CSTNode) -> list[cst.Call]:
    """Stores and atomics in a piece of code, and calls of what may hide some."""
    own = {jit.name: jit for jit in unit.jits}
    found = []
    for call in unit.tree.find(node, cst.Call):
        name, text = called(unit, call), squeeze(unit.tree.text(call.func))
        hidden = text in own and own[text].node is not node and effects(unit, own[text].node)
        asm = name in ("inline_asm_elementwise", "debug_barrier")
        if asm or hidden or name.startswith(("store", "atomic")):
            found.append(call)
    return found


def depends_on(unit: Unit, jit: Jit, names: frozenset[str]) -> frozenset[str]:
    """All names that these are computed from in a function, themselves included."""
    needs, found, todo = _needs(unit, jit), set[str](), set(names)
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= needs.get(name, set()) - found
    return frozenset(found)


def _needs(unit: Unit, jit: Jit) -> dict[str, set[str]]:
    """What each name is computed from directly; a loop's variable from the loop's limits."""
    key = ("needs", jit)
    if key not in unit.known:
        needs: dict[str, set[str]] = {}
        for line in unit.tree.find(jit.node, cst.SimpleStatementLine):
            for name in writes(unit, line):
                needs.setdefault(name, set()).update(reads(unit, line))
        for loop in unit.loops:
            if loop.jit is jit:
                needs.setdefault(loop.var, set()).update(reads(unit, loop.call))
        unit.known[key] = needs
    result: dict[str, set[str]] = unit.known[key]
    return result


def order_free(unit: Unit, loop: Loop) -> bool:
    """Whether a loop's iterations may run in any order: all that they hand on is sums and maxima.

    Stores are taken to hit other places in each iteration, as the entry's contract about tiles has it.
    """
    carried = hands_on(unit, loop.body)
    sums = [found for line in loop.body if (found := accumulated(unit, line))]
    kinds = {name: kind for name, kind, _ in sums}
    if carried - set(kinds):
        return False
    for name in carried:
        lines = [line for line in loop.body if name in writes(unit, line) | reads(unit, line)]
        if not all((found := accumulated(unit, line)) and found[0] == name for line in lines):
            return False
        if len({found[1] for line in lines if (found := accumulated(unit, line))}) > 1:
            return False
        if any(name in reads(unit, found[2]) for line in lines if (found := accumulated(unit, line))):
            return False
    return not any(called(unit, call).startswith("atomic") for call in effects(unit, loop.node))


def hands_on(unit: Unit, body: Sequence[cst.CSTNode]) -> frozenset[str]:
    """Names that an iteration reads before it has written them, and writes: what iterations hand on."""
    fresh, early = set[str](), set[str]()
    written: set[str] = set()
    for line in body:
        early |= reads(unit, line) - fresh
        written |= writes(unit, line)
        if isinstance(line, cst.SimpleStatementLine):
            fresh |= writes(unit, line)
    return frozenset(early & written)
