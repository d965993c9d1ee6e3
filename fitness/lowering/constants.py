"""Values of module-level constants, read from the syntax tree without running it."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

MOST = 1 << 256  # of an integer: 2**10**9 would take for ever
LENGTH = 4096  # of a text, list or tuple

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_, ast.BitXor: operator.xor, ast.RShift: operator.rshift,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "int": int, "float": float, "bool": bool, "abs": abs, "min": min, "max": max, "round": round, "len": len,
    "triton.cdiv": lambda a, b: -(-a // b),
    "triton.next_power_of_2": lambda n: 1 << max(0, int(n) - 1).bit_length(),
}  # fmt: skip


class NotConstant(Exception):
    """An expression that only running the module could evaluate."""


def value_of(node: ast.expr, names: Mapping[str, Any], dotted: Callable[[ast.expr], str | None]) -> Any:
    """The value of an expression of literals, earlier constants, arithmetic and ``math``.

    Args:
        node: the expression.
        names: constants known so far.
        dotted: full dotted name of an imported name or attribute, None for others.

    Raises:
        NotConstant: it is something else.
    """
    try:
        return _kept_small(_value(node, lambda inner: value_of(inner, names, dotted), names, dotted))
    except NotConstant:
        raise
    except (ArithmeticError, ValueError, TypeError, LookupError) as why:
        raise NotConstant(str(why)) from why


def _value(node: ast.expr, of: Callable[[ast.expr], Any], names: Mapping[str, Any], dotted: Any) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name) if name in names:
            return names[name]
        case ast.Tuple(items):
            return tuple(of(item) for item in items)
        case ast.List(items):
            return [of(item) for item in items]
        case ast.Dict(keys, values) if None not in keys:
            return {of(key): of(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(op, operand):
            return _UNARY[type(op)](of(operand))
        case ast.BinOp(left, op, right):
            return _arithmetic(type(op), of(left), of(right))
        case ast.Compare(left, [op], [right]):
            return _COMPARE[type(op)](of(left), of(right))
        case ast.IfExp(test, yes, no):
            return of(yes) if of(test) else of(no)
        case ast.BoolOp(op, parts):
            values = [of(part) for part in parts]
            return all(values) if isinstance(op, ast.And) else any(values)
        case ast.Subscript(value, index):
            return of(value)[of(index)]
        case ast.Call(function, arguments, []):
            return _called(function, dotted)(*[of(argument) for argument in arguments])
        case ast.Attribute():
            name = dotted(node) or ""
            found = getattr(math, name.removeprefix("math."), None) if name.startswith("math.") else None
            if isinstance(found, float):
                return found
    raise NotConstant(ast.unparse(node)[:80])


def _called(node: ast.expr, dotted: Callable[[ast.expr], str | None]) -> Callable[..., Any]:
    name = dotted(node) or (node.id if isinstance(node, ast.Name) else "")
    if name.startswith("math."):
        found = getattr(math, name.removeprefix("math."), None)
        if callable(found) and found not in (math.factorial, math.comb, math.perm, math.prod):
            return found  # type: ignore[no-any-return]
    if name in _CALLS:
        return _CALLS[name]
    raise NotConstant(f"{name or 'this'}(…)")


def _arithmetic(op: type, left: Any, right: Any) -> Any:
    if op is ast.Pow and abs(right) <= 256 and abs(left) <= 1 << 16:
        return left**right
    if op is ast.LShift and 0 <= right <= 256:
        return left << right
    if op is ast.Mult and not all(isinstance(side, (int, float)) for side in (left, right)):
        raise NotConstant("a product of other things than numbers")
    return _BINARY[op](left, right)


def _kept_small(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > MOST:
        raise NotConstant("an integer of more than 256 bits")
    if isinstance(value, (str, list, tuple)) and len(value) > LENGTH:
        raise NotConstant(f"more than {LENGTH} items")
    return value
