"""The ``triton`` language: what may be lowered. Reads the text only; runs nothing, imports no torch."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from fitness.lowering import lints
from fitness.target import Admission
from populations.kernel import Kernel
from populations.verdict import Outcome, Stage, Verdict

SOURCE_BYTES = 256 << 10
READ = 64  # sources kept as trees: each is read when admitted and again when lowered
ENTRIES = ("kernel_function", "ModelNew")


@dataclass(frozen=True)
class Source:
    """A source that may be lowered: its syntax tree, and the name of what is called."""

    kernel: Kernel
    tree: ast.Module
    entry: str


def admit(kernel: Kernel, entry: str | None = None) -> Admission | Verdict:
    """Rules that need no lowering; about a millisecond.

    Args:
        kernel: the source.
        entry: name of the function or class to call; None: ``kernel_function``, else ``ModelNew``.

    Returns:
        The admission, or a ``rejected`` verdict whose reason names the line.
    """
    source = read(kernel, entry)
    if isinstance(source, Verdict):
        return source
    return Admission(kernel, hashlib.sha256(normalise(source.tree).encode()).hexdigest())


@lru_cache(maxsize=READ)
def read(kernel: Kernel, entry: str | None = None) -> Source | Verdict:
    """The parsed source, or why it is rejected; nobody may change the tree, it is kept for the next call."""
    text = kernel.source
    if kernel.language != "triton":
        return _rejected(f"the language is {kernel.language}, this target takes triton")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as why:
        return _rejected(f"line {text.count(chr(10), 0, why.start) + 1}: is not UTF-8 text")
    if size > SOURCE_BYTES:
        return _rejected(f"the source has {size} bytes; at most {SOURCE_BYTES} (256 KiB) are allowed")
    try:
        tree = ast.parse(text)
    except SyntaxError as why:
        return _rejected(f"line {why.lineno}: {why.msg}")
    except (ValueError, RecursionError, MemoryError) as why:
        return _rejected(f"the source cannot be parsed: {why}")
    run = [statement for statement in tree.body if not lints.runs_never(statement)]
    nodes = [node for statement in run for node in ast.walk(statement)]
    wrong = lints.fault(nodes)
    if wrong:
        return _rejected(wrong)
    if not _has_kernel(nodes):
        return _rejected("there is no @triton.jit function")
    found = _entry(tree, entry)
    if found is None:
        names = f"named {entry}" if entry else "kernel_function, and no class ModelNew"
        return _rejected(f"there is no function {names} at module level")
    return Source(kernel, tree, found)


def normalise(tree: ast.Module) -> str:
    """The tree as text without comments, layout and docstrings; equal text means the same program."""
    bare = ast.parse("")
    bare.body = [_without_docstring(node) for node in tree.body if not _is_text(node)]
    return ast.dump(bare)


def _without_docstring(node: ast.stmt) -> ast.stmt:
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node
    body = [_without_docstring(inner) for inner in node.body if not _is_text(inner)]
    fields = {name: getattr(node, name) for name in node._fields}
    return type(node)(**{**fields, "body": body}, lineno=node.lineno, col_offset=node.col_offset)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _entry(tree: ast.Module, wanted: str | None) -> str | None:
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return next((name for name in ([wanted] if wanted else ENTRIES) if name in names), None)


def _has_kernel(nodes: Sequence[ast.AST]) -> bool:
    return any(
        (node.attr if isinstance(node, ast.Attribute) else node.id) == "jit"
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Name))
    )


def _rejected(reason: str) -> Verdict:
    return Verdict(Outcome.REJECTED, Stage.ADMIT, reason)
