"""Where pointers point: the buffer each comes from, and how far into it, as text that can be compared."""

from __future__ import annotations

from operators.cpp.nodes import Node
from operators.cpp.scalars import types_in
from operators.cpp.structure import Function, declared_name, squeeze
from operators.cpp.syntax import Unit, once_per_unit


@once_per_unit
def roots_in(unit: Unit, function: Function) -> dict[str, tuple[str | None, str]]:
    """For each pointer or array of a function: the buffer it points into, and its offset there.

    In a function other than the entry, pointer parameters may overlap unless they say ``restrict``.
    """
    roots: dict[str, tuple[str | None, str]] = {}
    pointers = [p for p in function.parameters if p.pointer]
    apart = function.entry or len(pointers) < 2 or all(p.restrict or p.const for p in pointers)
    for parameter in pointers:
        roots[parameter.name] = (parameter.name if apart else None, "")
    types = types_in(unit, function)
    for node in function.body.find("init_declarator", "array_declarator"):
        name = declared_name(node)
        if types.get(name, "").endswith("[]"):
            roots.setdefault(name, (name, ""))
        elif types.get(name, "").endswith("*") and node.kind == "init_declarator":
            roots[name] = pointee(node.part("value"), roots)
    for name, ctype in types.items():
        if ctype.endswith("[]") and name not in roots:
            roots[name] = (name, "")  # a constant table at namespace scope
    for node in function.body.find("assignment_expression", "update_expression"):
        target = node.child("left") or node.child("argument")
        if target is not None and target.text in roots and node.kind != "subscript_expression":
            roots[target.text] = (roots[target.text][0], "?")
    return roots


def pointee(value: Node, roots: dict[str, tuple[str | None, str]]) -> tuple[str | None, str]:
    """The buffer that a pointer expression points into, and the offset there."""
    if value.kind == "parenthesized_expression":
        return pointee(value.named_children[0], roots)
    if value.kind == "identifier":
        return roots.get(value.text, (None, "?"))
    if value.kind == "pointer_expression" and value.text.startswith("&"):
        inner = value.part("argument")
        if inner.kind == "subscript_expression" and inner.part("argument").kind == "identifier":
            root, before = roots.get(inner.part("argument").text, (None, "?"))
            return root, joined(before, squeeze(inner.part("indices").text[1:-1]))
    if value.kind == "binary_expression" and value.part("operator").text in ("+", "-"):
        root, before = pointee(value.part("left"), roots)
        sign = "" if value.part("operator").text == "+" else "-"
        return root, joined(before, sign + squeeze(value.part("right").text))
    return None, "?"


def joined(left: str, right: str) -> str:
    """Two offsets, one after the other."""
    if not left:
        return right
    return left + right if right.startswith("-") else f"{left}+{right}"


@once_per_unit
def offsets_in(unit: Unit, function: Function) -> dict[str, str]:
    """Constant integers of a function that are sums or products of others, e.g. ``start``: "row*n"."""
    found: dict[str, str] = {}
    types = types_in(unit, function)
    for node in function.body.find("declaration"):
        qualifiers = [child.text for child in node.children if child.kind == "type_qualifier"]
        for child in node.children:
            value = child.child("value") if child.kind == "init_declarator" else None
            name = declared_name(child)
            whole = types.get(name, "?").endswith(("t", "int", "long"))
            if "const" in qualifiers and whole and value is not None and value.kind == "binary_expression":
                found[name] = spelled_out(squeeze(value.text), found)
    return found


def spelled_out(offset: str, known: dict[str, str]) -> str:
    """The offset with constants that are whole terms written out."""
    terms = [known.get(term, term) for term in split_terms(offset)]
    return "".join(term if i == 0 or term.startswith("-") else "+" + term for i, term in enumerate(terms))


def split_terms(offset: str) -> list[str]:
    """The summands of an offset, outer parentheses left whole: "r*n+j" -> ["r*n", "j"]."""
    return split_at(offset, "+-")


def split_at(text: str, at: str) -> list[str]:
    """The parts of a text between these characters, where no bracket is open; a minus stays with its part."""
    parts: list[str] = []
    depth, part = 0, ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char in at and depth == 0 and part:
            parts.append(part)
            part = "-" if char == "-" else ""
        else:
            part += char
    return [*parts, part] if part else parts
