"""The shapes of values in a jit function, as far as the text says."""

from __future__ import annotations

import re

import libcst as cst

from operators.triton.flow import argument_of, bound_names, called, only
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import squeeze

Shape = tuple[str, ...]
REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce")
SAME = ("cumsum", "cumprod", "associative_scan", "sort", "flip", "multiple_of", "max_contiguous", "softmax",
        "max_constancy", "load", "cast", "debug_barrier", "sigmoid")  # fmt: skip
EACH = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sqrt_rn", "div_rn", "fma", "where", "maximum",
        "minimum", "abs", "sin", "cos", "erf", "floor", "ceil", "clamp", "cdiv", "program_id", "tanh",
        "num_programs", "log1p", "expm1", "pow", "rint", "fdiv", "umulhi")  # fmt: skip


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
            for name in bound_names(unit, target):
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
