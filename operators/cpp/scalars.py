"""Which type a name or an expression has, as far as the text says; ``None`` where it does not."""

from __future__ import annotations

from operators.cpp.nodes import Node
from operators.cpp.structure import Function, declared_name
from operators.cpp.syntax import Unit, once_per_unit

FLOATS = ("float", "double")
_SAME_AS_ARGUMENT = {
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "pow", "tanh", "erf", "sin", "cos", "fma",
    "fabs", "abs", "max", "min", "fmax", "fmin", "copysign",
    "rint", "nearbyint", "round", "floor", "ceil", "trunc",
}  # fmt: skip


@once_per_unit
def types_in(unit: Unit, function: Function) -> dict[str, str]:
    """The declared type of each name: "float", "float*", "float[]"; one declared in two ways is left out."""
    found: dict[str, str] = {}
    clashes: set[str] = set()

    def note(name: str, ctype: str) -> None:
        if found.setdefault(name, ctype) != ctype:
            clashes.add(name)

    for top in unit.root.children:
        if top.kind == "declaration":
            _note_declaration(top, note)
    for parameter in function.parameters:
        note(parameter.name, parameter.ctype + "*" * parameter.pointer)
    for node in function.body.find("declaration"):
        _note_declaration(node, note)
    return {name: ctype for name, ctype in found.items() if name not in clashes}


def _note_declaration(node: Node, note: object) -> None:
    assert callable(note)
    ctype = node.child("type")
    for child in node.children:
        if child.field == "declarator" and ctype is not None:
            declarator = child.child("declarator") if child.kind == "init_declarator" else child
            kind = declarator.kind if declarator else ""
            kind = "" if len(list(child.find("pointer_declarator", "array_declarator"))) > 1 else kind
            suffix = {"pointer_declarator": "*", "array_declarator": "[]", "identifier": ""}.get(kind, "?")
            note(declared_name(child), ctype.text + suffix)


def type_of(expression: Node, types: dict[str, str], unit: Unit) -> str | None:
    """The scalar type of an expression: "float", "double", "int" (any integer), or None if unknown."""
    kind = expression.kind
    if kind == "number_literal":
        text = expression.text.lower()
        if text.startswith("0x") and "p" not in text:
            return "int"
        if "." in text or "e" in text:
            return "float" if text.endswith("f") else "double"
        return "int"
    if kind == "identifier":
        return "float" if expression.text == "INFINITY" else scalar(types.get(expression.text, ""))
    if kind == "subscript_expression" or (kind == "pointer_expression" and expression.text.startswith("*")):
        base = expression.part("argument")
        ctype = types.get(base.text, "") if base.kind == "identifier" else ""
        return scalar(ctype[:-1] if ctype.endswith("*") else ctype[:-2] if ctype.endswith("[]") else "")
    if kind in ("parenthesized_expression", "unary_expression"):
        inner = expression.named_children
        return type_of(inner[-1], types, unit) if inner else None
    if kind == "binary_expression":
        if expression.part("operator").text in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
            return "int"
        sides = (expression.part("left"), expression.part("right"))
        return _wider([type_of(side, types, unit) for side in sides])
    if kind == "conditional_expression":
        return _wider([type_of(expression.part(r), types, unit) for r in ("consequence", "alternative")])
    return _type_of_call(expression, types, unit) if kind == "call_expression" else None


def _type_of_call(call: Node, types: dict[str, str], unit: Unit) -> str | None:
    name = called(call)
    if name == "static_cast":
        descriptor = next(call.part("function").find("type_descriptor"), None)
        return scalar(descriptor.text) if descriptor else None
    own = next((function for function in unit.functions if function.name == name), None)
    if own is not None:
        return scalar(own.returns)
    arguments = call.part("arguments").named_children
    if name in _SAME_AS_ARGUMENT and call.part("function").text.startswith("std::"):
        found = _wider([type_of(argument, types, unit) for argument in arguments])
        return "double" if found == "int" and name not in ("max", "min", "abs") else found
    if name.endswith("f") and name[:-1] in _SAME_AS_ARGUMENT:
        return "float"
    return "double" if name in _SAME_AS_ARGUMENT else None


def called(call: Node) -> str:
    """The called function's name without its namespace: "exp" for ``std::exp(x)``."""
    function = call.part("function")
    name = function.child("name")
    while name is not None and name.kind != "identifier" and name.child("name") is not None:
        name = name.child("name")
    return (name or function).text


def scalar(ctype: str) -> str | None:
    """ "float", "double" or "int" for a declared arithmetic type; None for anything else."""
    ctype = ctype.replace("const", "").replace("std::", "").strip()
    if ctype in FLOATS:
        return ctype
    integers = ("int", "bool", "char", "long", "short", "unsigned", "size_t", "ptrdiff_t")
    return "int" if ctype.endswith("_t") or ctype.split(" ")[-1] in integers else None


def _wider(found: list[str | None]) -> str | None:
    if None in found:
        return None
    return "double" if "double" in found else "float" if "float" in found else "int"


def is_exponential(call: Node) -> bool:
    """Whether a call is exp in any form: the library's, or an own one by its name."""
    name = called(call).removeprefix("__builtin_")
    return name in ("exp", "expf") or name.startswith("exp_")
