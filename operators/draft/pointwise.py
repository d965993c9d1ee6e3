"""Operations on single elements as C expressions."""

from __future__ import annotations

from collections.abc import Callable

from operators.draft.expressions import ATOM, LOOSE, PRODUCT, SUM, Value, common, converted, literal
from operators.draft.operations import Operation, Undraftable, computed_in

FUNCTIONS = {
    name: name
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "ceil", "floor", "trunc",
    )
} | {"round": "nearbyint"}  # fmt: skip
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COPIES = (
    "_to_copy", "clone", "alias", "copy", "contiguous", "detach", "lift_fresh_copy", "lift_fresh", "to",
    "detach_copy", "alias_copy", "convert_element_type",
)  # fmt: skip


def expression(node: Operation, read: Callable[[str], Value | None]) -> Value | None:
    """The node's element, from those of its arguments; None where the operation is of another kind.

    Args:
        node: the operation.
        read: the value of the argument of this name, numbers included; None where it was not given.
    """
    name = node.op.removeprefix("aten.").removeprefix("prims.")
    rule = RULES.get(name)
    if name in FUNCTIONS:
        found = _function(node, read, FUNCTIONS[name])
    elif name in COMPARISONS:
        found = _compared(read, COMPARISONS[name])
    elif rule is not None:
        found = rule(node, read)
    else:
        return None
    return found


def is_pointwise(op: str) -> bool:
    """Whether ``expression`` knows it."""
    name = op.removeprefix("aten.").removeprefix("prims.")
    return name in FUNCTIONS or name in COMPARISONS or name in RULES


Read = Callable[[str], Value | None]


def _need(read: Read, name: str, type: str | None = None) -> Value:
    value = read(name)
    if value is None:
        raise Undraftable(f"an argument {name} that is missing")
    return converted(value, type) if type else value


def _deep(*values: Value) -> int:
    return max(value.depth for value in values)


def _function(node: Operation, read: Read, name: str) -> Value:
    type = node.c_type
    if type == "int64_t":
        return _need(read, "self", type)
    x = _need(read, "self", type)
    return Value(f"{name}{'f' if type == 'float' else ''}({x.text})", type, ATOM, x.depth)


def _compared(read: Read, sign: str) -> Value:
    a, b = _need(read, "self"), _need(read, "other")
    type = common(a.type, b.type)
    if type != "bool":
        a, b = converted(a, type), converted(b, type)
    return Value(f"{a.within(SUM)} {sign} {b.within(SUM)}", "bool", LOOSE, _deep(a, b))


def _binary(sign: str, left: int, right: int, binds: int) -> Callable[[Operation, Read], Value]:
    def rule(node: Operation, read: Read) -> Value:
        type = node.c_type
        a, b = _need(read, "self", type), _need(read, "other", type)
        if type == "bool":
            word = {"+": "||", "*": "&&"}[sign]
            return Value(f"{a.within(ATOM)} {word} {b.within(ATOM)}", type, LOOSE, _deep(a, b))
        alpha = node["alpha"]
        if alpha not in (None, 1):
            b = Value(f"{literal(alpha, type).within(ATOM)} * {b.within(PRODUCT)}", type, PRODUCT, b.depth)
        return Value(f"{a.within(left)} {sign} {b.within(right)}", type, binds, _deep(a, b))

    return rule


def _reversed_sub(node: Operation, read: Read) -> Value:
    type = node.c_type
    a, b = _need(read, "self", type), _need(read, "other", type)
    return Value(f"{b.within(SUM)} - {a.within(PRODUCT)}", type, SUM, _deep(a, b))


def _div(node: Operation, read: Read) -> Value:
    type = node.c_type
    rounding = node["rounding_mode"]
    a, b = _need(read, "self", type), _need(read, "other", type)
    text = f"{a.within(PRODUCT)} / {b.within(ATOM)}"
    if rounding is None:
        return Value(text, type, PRODUCT, _deep(a, b))
    if type == "int64_t":
        if rounding == "floor":
            return Value(f"floor_div({a.text}, {b.text})", type, ATOM, _deep(a, b))
        return Value(text, type, PRODUCT, _deep(a, b))
    word = "floor" if rounding == "floor" else "trunc"
    return Value(f"{word}{'f' if type == 'float' else ''}({text})", type, ATOM, _deep(a, b))


def _form(
    text: str, *names: str, binds: int = LOOSE, type: str | None = None
) -> Callable[[Operation, Read], Value]:
    """A formula: {self} for an atom, {self_} within brackets, {f} for a function's suffix, {one} for 1."""

    def rule(node: Operation, read: Read) -> Value:
        kind = type or node.c_type
        inside = kind if kind != "bool" or type else None
        values = {name: _need(read, name, inside) for name in names}
        words = {name: value.within(ATOM) for name, value in values.items()}
        words |= {f"{name}_": value.text for name, value in values.items()}
        made = text.format(
            **words, f="f" if kind == "float" else "", one=literal(1, kind).text, zero=literal(0, kind).text
        )
        return Value(made, node.c_type, binds, _deep(*values.values()))

    return rule


def _fmod(node: Operation, read: Read) -> Value:
    type = node.c_type
    a, b = _need(read, "self", type), _need(read, "other", type)
    if type == "int64_t":
        return Value(f"{a.within(ATOM)} % {b.within(ATOM)}", type, PRODUCT, _deep(a, b))
    return Value(f"fmod{'f' if type == 'float' else ''}({a.text}, {b.text})", type, ATOM, _deep(a, b))


def _pow(node: Operation, read: Read) -> Value:
    type = node.c_type
    a, b = _need(read, "self", type), _need(read, "exponent", type)
    exponent = node["exponent"]
    if exponent == 0.5 and type != "int64_t":
        return Value(f"sqrt{'f' if type == 'float' else ''}({a.text})", type, ATOM, a.depth)
    if exponent in (1, 2, 3) and not isinstance(exponent, str):
        return Value(" * ".join([a.within(ATOM)] * int(exponent)), type, PRODUCT, a.depth)
    if type == "int64_t":
        return Value(f"int64_t(pow(double({a.text}), double({b.text})))", type, ATOM, _deep(a, b))
    return Value(f"pow{'f' if type == 'float' else ''}({a.text}, {b.text})", type, ATOM, _deep(a, b))


def _clamp(node: Operation, read: Read) -> Value:
    type = node.c_type
    x = _need(read, "self", type)
    low, high = read("min"), read("max")
    text, deep = x.within(ATOM), [x]
    if low is not None:
        low = converted(low, type)
        text = f"({text} < {low.within(SUM)} ? {low.within(SUM)} : {text})"
        deep.append(low)
    if high is not None:
        high = converted(high, type)
        text = f"({text} > {high.within(SUM)} ? {high.within(SUM)} : {text})"
        deep.append(high)
    return Value(text, type, ATOM, _deep(*deep))


def _where(node: Operation, read: Read) -> Value:
    type = node.c_type
    condition = _need(read, "condition", "bool")
    a, b = _need(read, "self", type), _need(read, "other", type)
    text = f"{condition.within(ATOM)} ? {a.within(SUM)} : {b.within(SUM)}"
    return Value(text, type, LOOSE, _deep(condition, a, b))


def _copy(node: Operation, read: Read) -> Value:
    value = read("src") if read("src") is not None else None
    value = value or read("self") or read("a")
    if value is None:
        raise Undraftable(node.op)
    return converted(value, computed_in(node.dtype))


def _not(node: Operation, read: Read) -> Value:
    if node.c_type == "int64_t":
        x = _need(read, "self", "int64_t")
        return Value(f"~{x.within(ATOM)}", "int64_t", PRODUCT, x.depth)
    x = _need(read, "self", "bool")
    return Value(f"!{x.within(ATOM)}", "bool", PRODUCT, x.depth)


def _bits(sign: str) -> Callable[[Operation, Read], Value]:
    def rule(node: Operation, read: Read) -> Value:
        type = node.c_type
        a, b = _need(read, "self", type), _need(read, "other", type)
        return Value(f"{a.within(ATOM)} {sign} {b.within(ATOM)}", type, LOOSE, _deep(a, b))

    return rule


def _full(node: Operation, read: Read) -> Value:
    name = "fill_value" if "fill_value" in node.given else "value" if "value" in node.given else "s"
    return _need(read, name, node.c_type)


def _constant(number: int) -> Callable[[Operation, Read], Value]:
    return lambda node, _: literal(number, node.c_type)


RULES: dict[str, Callable[[Operation, Read], Value]] = {
    "add": _binary("+", SUM, SUM, SUM),
    "sub": _binary("-", SUM, PRODUCT, SUM),
    "mul": _binary("*", PRODUCT, PRODUCT, PRODUCT),
    "div": _div,
    "rsub": _reversed_sub,
    "pow": _pow,
    "neg": _form("-{self}", "self", binds=PRODUCT),
    "abs": _form("({self} < 0 ? -{self} : {self})", "self", binds=ATOM),
    "sign": _form("({self} > 0) - ({self} < 0)", "self", binds=SUM),
    "sgn": _form("({self} > 0) - ({self} < 0)", "self", binds=SUM),
    "reciprocal": _form("{one} / {self}", "self", binds=PRODUCT),
    "rsqrt": _form("{one} / sqrt{f}({self_})", "self", binds=PRODUCT),
    "square": _form("{self} * {self}", "self", binds=PRODUCT),
    "sigmoid": _form("{one} / ({one} + exp{f}(-{self}))", "self", binds=PRODUCT),
    "silu": _form("{self} / ({one} + exp{f}(-{self}))", "self", binds=PRODUCT),
    "relu": _form("{self} < 0 ? {zero} : {self}", "self"),
    "frac": _form("{self} - trunc{f}({self_})", "self", binds=SUM),
    "maximum": _form("{self} > {other} || {self} != {self} ? {self} : {other}", "self", "other"),
    "minimum": _form("{self} < {other} || {self} != {self} ? {self} : {other}", "self", "other"),
    "fmod": _fmod,
    "atan2": _form("atan2{f}({self_}, {other_})", "self", "other", binds=ATOM),
    "remainder": _form("remainder_of({self_}, {other_})", "self", "other", binds=ATOM),
    "isnan": _form("{self} != {self}", "self"),
    "isinf": _form("std::isinf({self_})", "self", binds=ATOM),
    "isfinite": _form("std::isfinite({self_})", "self", binds=ATOM),
    "logical_not": _not,
    "bitwise_not": _not,
    "logical_and": _form("{self} && {other}", "self", "other", type="bool"),
    "logical_or": _form("{self} || {other}", "self", "other", type="bool"),
    "logical_xor": _form("{self} != {other}", "self", "other", type="bool"),
    "bitwise_and": _bits("&"),
    "bitwise_or": _bits("|"),
    "bitwise_xor": _bits("^"),
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "where": _where,
    "full": _full,
    "full_like": _full,
    "scalar_tensor": _full,
    "zeros": _constant(0),
    "zeros_like": _constant(0),
    "ones": _constant(1),
    "ones_like": _constant(1),
    "empty": _constant(0),
    "empty_like": _constant(0),
    "empty_permuted": _constant(0),
    "empty_strided": _constant(0),
    "fill": _full,
} | dict.fromkeys(COPIES, _copy)
