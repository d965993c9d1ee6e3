"""What code in a jit function reads and writes, and the shape of its values, as far as the text says."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from operators.triton.structure import Jit, Loop, Unit
from operators.triton.syntax import squeeze

Shape = tuple[str, ...]
REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce")
SAME = ("cumsum", "cumprod", "associative_scan", "sort", "flip", "multiple_of", "max_contiguous", "softmax",
        "max_constancy", "load", "cast", "debug_barrier", "sigmoid")  # fmt: skip
EACH = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sqrt_rn", "div_rn", "fma", "where", "maximum",
        "minimum", "abs", "sin", "cos", "erf", "floor", "ceil", "clamp", "cdiv", "program_id", "tanh",
        "num_programs", "log1p", "expm1", "pow", "rint", "fdiv", "umulhi")  # fmt: skip
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
                found |= {name.value for name in _bound(unit, holder.target)}
        unit.known[key] = frozenset(found)
    result: frozenset[str] = unit.known[key]
    return result


def _bound(unit: Unit, target: cst.CSTNode) -> list[cst.Name]:
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


def shapes(unit: Unit, jit: Jit) -> dict[str, Shape | None]:
    """The shape of each name in a jit function; None where the text does not say. Scalars have ()."""
    key = ("shapes", jit)
    if key not in unit.known:
        launched = any(launch.kernel is jit for launch in unit.launches)
        known: dict[str, Shape | None] = {
            p.name: () if launched or p.constexpr else None for p in jit.parameters
        }
        known |= {loop.var: () for loop in unit.loops if loop.jit is jit}
        for line in unit.tree.find(jit.node, cst.SimpleStatementLine):
            small = only(line)
            if isinstance(small, cst.AugAssign):
                value, target = small.value, small.target
                shape = broadcast(known.get(unit.tree.text(target)), shape_of(unit, value, known))
            elif isinstance(small, cst.Assign) and len(small.targets) == 1:
                target = small.targets[0].target
                shape = shape_of(unit, small.value, known)
            else:
                continue
            for name in _bound(unit, target):
                plain = shape if isinstance(target, cst.Name) else None
                known[name.value] = plain if known.get(name.value, plain) == plain else None
        unit.known[key] = known
    result: dict[str, Shape | None] = unit.known[key]
    return result


def broadcast(*found: Shape | None) -> Shape | None:
    """The shape of an operation on values of these shapes."""
    result: Shape = ()
    for shape in found:
        if shape is None:
            return None
        longer, other = (shape, result) if len(shape) >= len(result) else (result, shape)
        padded = ("1",) * (len(longer) - len(other)) + other
        if any(a != b and "1" not in (a, b) for a, b in zip(longer, padded, strict=True)):
            return None
        result = tuple(b if a == "1" else a for a, b in zip(longer, padded, strict=True))
    return result


def shape_of(unit: Unit, node: cst.CSTNode, known: dict[str, Shape | None]) -> Shape | None:
    """The shape of an expression."""
    if isinstance(node, cst.Name):
        return known.get(node.value, ())
    if isinstance(node, cst.BaseNumber | cst.BaseString):
        return ()
    if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        return broadcast(shape_of(unit, node.left, known), shape_of(unit, node.right, known))
    if isinstance(node, cst.Comparison):
        sides = [node.left, *(target.comparator for target in node.comparisons)]
        return broadcast(*(shape_of(unit, side, known) for side in sides))
    if isinstance(node, cst.UnaryOperation):
        return shape_of(unit, node.expression, known)
    if isinstance(node, cst.IfExp):
        return broadcast(shape_of(unit, node.body, known), shape_of(unit, node.orelse, known))
    if isinstance(node, cst.Subscript):
        return _indexed(unit, node, known)
    if isinstance(node, cst.Attribute):
        shape = shape_of(unit, node.value, known)
        return None if shape is None else shape[::-1] if node.attr.value == "T" else () if not shape else None
    return _of_call(unit, node, known) if isinstance(node, cst.Call) else None


def _indexed(unit: Unit, node: cst.Subscript, known: dict[str, Shape | None]) -> Shape | None:
    shape, found = shape_of(unit, node.value, known), list[str]()
    if shape is None:
        return None
    rest = iter(shape)
    for element in node.slice:
        text = squeeze(unit.tree.text(element.slice))
        if text not in ("None", ":"):
            return None
        found.append("1" if text == "None" else next(rest, "?"))
    return None if next(rest, None) is not None or "?" in found else tuple(found)


def _of_call(unit: Unit, call: cst.Call, known: dict[str, Shape | None]) -> Shape | None:
    name = called(unit, call)
    args = [arg.value for arg in call.args]
    if name == "to" and isinstance(call.func, cst.Attribute):
        return shape_of(unit, call.func.value, known)
    if name == "arange" and len(args) == 2:
        return (squeeze(unit.tree.text(args[1])),) if squeeze(unit.tree.text(args[0])) == "0" else None
    if name in ("zeros", "full", "reshape", "view", "broadcast_to"):
        given = args[0 if name in ("zeros", "full") else 1] if args else None
        if isinstance(given, cst.Tuple | cst.List):
            return tuple(squeeze(unit.tree.text(element.value)) for element in given.elements)
        return None
    if name in REDUCTIONS and args:
        return _reduced(unit, call, shape_of(unit, args[0], known))
    if name == "dot" and len(args) >= 2:
        left, right = (shape_of(unit, arg, known) for arg in args[:2])
        return (left[-2], right[-1]) if left and right and len(left) == len(right) == 2 else None
    if name == "trans" and len(args) == 1:
        shape = shape_of(unit, args[0], known)
        return None if shape is None else shape[::-1]
    if name in SAME and args:
        return shape_of(unit, args[0], known)
    if name in EACH:
        return broadcast(*(shape_of(unit, arg.value, known) for arg in call.args if arg.keyword is None))
    return None


def _reduced(unit: Unit, call: cst.Call, shape: Shape | None) -> Shape | None:
    axis = argument_of(call, "axis", 1)
    text = squeeze(unit.tree.text(axis.value)) if axis else "None"
    if text == "None":
        return ()
    if shape is None or not re.fullmatch(r"-?\d", text) or not -len(shape) <= int(text) < len(shape):
        return None
    place, keep = int(text) % len(shape), argument_of(call, "keep_dims")
    middle = ("1",) if keep is not None and unit.tree.text(keep.value) == "True" else ()
    return (*shape[:place], *middle, *shape[place + 1 :])


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
