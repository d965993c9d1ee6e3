"""A problem file as text: its integer constants, and running it with some of them overridden.

One mechanism makes all cases of a problem: after a module-level ``NAME = <int>`` another value is assigned,
in the text, and the module is executed anew. What is computed from ``NAME`` further down follows.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import linecache
import operator
import re
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from fitness.judge.usercode import user_code
from fitness.target import ProblemError
from populations.text import read_text

OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
LARGEST = 1 << 62
_serial = itertools.count()


@dataclass(frozen=True)
class Constant:
    """A module-level integer.

    Attributes:
        value: as the file has it.
        literal: whether its expression names no other constant.
        ends: where the statements that assign it end, in bytes of the encoded text.
    """

    value: int
    literal: bool
    ends: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """The text of a problem file, parsed.

    Attributes:
        text: as it will run, sizes of the target in it (see ``resized``).
        sha: SHA-256 of the file's own text.
        constants: its module-level integers.
    """

    path: Path
    text: str
    tree: ast.Module
    constants: dict[str, Constant]
    sha: str

    @property
    def where(self) -> str:
        """The path, as error messages show it."""
        return str(self.path)

    @property
    def summary(self) -> str:
        """First line of the docstring, or nothing."""
        return (ast.get_docstring(self.tree) or "").split("\n")[0]

    def execute(self, overrides: Mapping[str, int]) -> ModuleType:
        """The module, run with some constants overridden.

        Raises:
            ProblemError: it raised.
        """
        named = ", ".join(f"{name}={value}" for name, value in overrides.items())
        filename = f"{self.path} with {named}" if named else self.where
        text = self._overridden(overrides)
        module = ModuleType(f"problem_{re.sub(r'[^0-9A-Za-z_]', '_', self.path.stem)}_{next(_serial)}")
        module.__file__ = self.where
        # Registered, so that inspect and torch.compile find the module and the text that really runs.
        sys.modules[module.__name__] = module
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        folder = str(self.path.resolve().parent)
        if folder not in sys.path:
            sys.path.append(folder)
        with user_code(self.where, "the file", "mend it so that it can be imported"):
            exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)
        return module

    def resized(self, sizes: Mapping[str, int]) -> Source:
        """The same file with other values of some constants to start from."""
        if not sizes:
            return self
        text = self._overridden(sizes)
        tree = ast.parse(text, filename=str(self.path))
        return replace(self, text=text, tree=tree, constants=_constants(tree, text))

    def _overridden(self, overrides: Mapping[str, int]) -> str:
        encoded = self.text.encode()
        edits = [(end, name) for name in overrides for end in self.constants[name].ends]
        for end, name in sorted(edits, reverse=True):
            encoded = encoded[:end] + f"; {name} = {overrides[name]}".encode() + encoded[end:]
        return encoded.decode()

    def sizes_used_by(self, function: str) -> list[str]:
        """Literal constants on which a module-level function depends, in the order in which it reads them."""
        definitions = _definitions(self.tree)
        found: list[str] = []
        seen: set[str] = set()

        def visit(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            if name in self.constants and self.constants[name].literal:
                found.append(name)
            for node in definitions.get(name, []):
                for part in ast.walk(node):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                        visit(part.id)

        visit(function)
        return found


def read(path: Path) -> Source:
    """Read and parse a problem file; nothing of it runs.

    Raises:
        ProblemError: it is missing, a folder, unreadable, or not Python.
    """
    if path.is_dir():
        raise ProblemError(f"{path}: is a folder; name the problem file in it")
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device may never end
            raise ProblemError(f"{path}: is no regular file; copy it to one and name that")
        text = read_text(path).removeprefix("\N{BYTE ORDER MARK}")
    except FileNotFoundError:
        raise ProblemError(
            f"{path}: no such file; give the path of a problem file or a built-in name"
        ) from None
    except UnicodeDecodeError:
        raise ProblemError(f"{path}: is not text; give a Python file with Model and get_inputs") from None
    except OSError as why:
        raise ProblemError(f"{path}: cannot be read ({why.strerror}); check its permissions") from None
    try:
        tree = ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        line = f":{why.lineno}" if isinstance(why, SyntaxError) and why.lineno else ""
        message = why.msg if isinstance(why, SyntaxError) else why
        raise ProblemError(f"{path}{line}: is not Python ({message}); mend it or name another file") from None
    return Source(path, text, tree, _constants(tree, text), hashlib.sha256(text.encode()).hexdigest())


def _constants(tree: ast.Module, text: str) -> dict[str, Constant]:
    starts = [0, *itertools.accumulate(len(line.encode()) + 1 for line in text.split("\n"))]
    found: dict[str, Constant] = {}
    for name, expression, statement in _assignments(tree):
        value = _folded(expression, {known: constant.value for known, constant in found.items()})
        if value is None:
            found.pop(name, None)  # it is no longer an integer
            continue
        end = starts[(statement.end_lineno or 1) - 1] + (statement.end_col_offset or 0)
        literal = not any(isinstance(node, ast.Name) for node in ast.walk(expression))
        earlier = found[name].ends if name in found else ()
        found[name] = Constant(value, literal, (*earlier, end))
    return found


def _assignments(tree: ast.Module) -> list[tuple[str, ast.expr, ast.stmt]]:
    """Every module-level ``NAME = expression`` and its statement, tuples taken apart."""
    found: list[tuple[str, ast.expr, ast.stmt]] = []
    for statement in tree.body:
        targets: list[ast.expr]
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        elif isinstance(statement, ast.Assign):
            targets, value = list(statement.targets), statement.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                found.append((target.id, value, statement))
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = zip(target.elts, value.elts, strict=False)
                found += [(name.id, part, statement) for name, part in pairs if isinstance(name, ast.Name)]
    return found


def _folded(node: ast.expr, known: Mapping[str, int]) -> int | None:
    """Value of a simple integer expression, None where it is something else."""
    value: int | None = None
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
    elif isinstance(node, ast.Name):
        value = known.get(node.id)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _folded(node.operand, known)
        value = None if operand is None else -operand
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        left, right = _folded(node.left, known), _folded(node.right, known)
        small = left is not None and right is not None and 0 <= right <= (64 if _grows(node.op) else LARGEST)
        if small and left is not None and right is not None and not (right == 0 and _divides(node.op)):
            value = OPERATIONS[type(node.op)](left, right)
    return value if value is not None and abs(value) <= LARGEST else None


def _grows(op: ast.operator) -> bool:
    return isinstance(op, ast.Pow | ast.LShift | ast.RShift)


def _divides(op: ast.operator) -> bool:
    return isinstance(op, ast.FloorDiv | ast.Mod)


def _definitions(tree: ast.Module) -> dict[str, list[ast.AST]]:
    """What each module-level name is defined by."""
    found: dict[str, list[ast.AST]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.setdefault(statement.name, []).append(statement)
    for name, expression, _ in _assignments(tree):
        found.setdefault(name, []).append(expression)
    return found
