"""A problem file as agents may see it: the reference and how inputs are made, nothing of its cases."""

from __future__ import annotations

import ast
from collections.abc import Mapping

SEEN = ("Model", "get_inputs", "get_init_inputs")


def shown(text: str, constants: Mapping[str, int] | None = None) -> str:
    """The parts of a problem file that its reference and its given inputs are made of.

    Hooks such as ``get_cases`` are left out with all that only they use: they may list held-out cases. So are
    comments between definitions.

    Args:
        text: the whole file; one that can't be parsed gives "".
        constants: module-level integers that the target's given case overrides.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    lines = text.replace("\r\n", "\n").split("\n")
    wanted, kept = set(SEEN), set[int]()
    while True:
        new = {n for n, node in enumerate(body) if n not in kept and _binds(node) & wanted}
        if not new:
            break
        kept |= new
        wanted |= {each.id for n in new for each in ast.walk(body[n]) if isinstance(each, ast.Name)}
        wanted |= {word for n in new for word in _annotations(body[n])}
    given = constants or {}
    pieces: list[str] = []
    kind = ""
    for n, node in enumerate(body):
        if n in kept or (n == 0 and _is_text(node)):
            text = _text(node, lines, given)
            apart = "\n" in text or (bool(pieces) and "\n" in pieces[-1]) or _kind(node) != kind
            pieces += ["", text] if pieces and apart else [text]
            kind = _kind(node)
    return "\n".join(pieces) + "\n" if kept else ""


def _binds(node: ast.stmt) -> set[str]:
    """Names that a statement of the module gives a meaning to."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _annotations(node: ast.stmt) -> set[str]:
    """Names in annotations that are written as text."""
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {value for value in found if isinstance(value, str) and value.isidentifier()}


def _kind(node: ast.stmt) -> str:
    return (
        "import" if isinstance(node, (ast.Import, ast.ImportFrom)) else "text" if _is_text(node) else "code"
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(node: ast.stmt, lines: list[str], given: Mapping[str, int]) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        if name in given:
            return f"{name} = {given[name]}"
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(lines[first - 1 : node.end_lineno])
