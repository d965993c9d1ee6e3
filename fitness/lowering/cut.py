"""Cuts the device code out of a source: what the compiler gets, and all that it gets.

The cut module holds imports from Triton's language, constants as literals, and the ``@triton.jit`` functions
that are launched or called from there; no statement of the host's. It is made from the syntax tree alone.
Names that resolve to something else, underscored attributes and ``getattr`` are refused: the code generator
of Triton would otherwise call whatever Python they lead to.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fitness.lowering import lints
from fitness.lowering.constants import NotConstant, value_of

OURS = "_triton"
_NO_DEVICE_CODE = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Global,
    ast.Nonlocal, ast.Try, ast.Await, ast.Yield, ast.YieldFrom,
)  # fmt: skip
BUILTINS = frozenset(
    [
        "range",
        "len",
        "min",
        "max",
        "int",
        "float",
        "bool",
        "abs",
        "print",
        "isinstance",
        "hasattr",
        "tuple",
        "list",
    ]
)
HIDDEN = frozenset(
    ["fn", "run", "warmup", "handle", "src", "builder", "semantic", "cache_key", "preload", "device_caches"]
)


class CutError(Exception):
    """Device code that must not be compiled; the text starts with its line."""


@dataclass(frozen=True)
class Cut:
    """The device half of a source.

    Attributes:
        text: the module.
        lines: line of the text → line of the source.
        functions: the jit functions in it.
        dotted: every name of Triton's that it uses → line of the source, e.g. {"triton.language.exp": 9}.
    """

    text: str
    lines: dict[int, int]
    functions: tuple[str, ...]
    dotted: dict[str, int]


def cut(scope: Scope, wanted: Iterable[str]) -> Cut:
    """The module with the ``wanted`` jit functions and what they need, and nothing else.

    Raises:
        CutError: they use something that is not device code.
    """
    key = frozenset(wanted)
    if key not in scope.cuts:
        scope.cuts[key] = _cut(scope, key)
    return scope.cuts[key]


def _cut(scope: Scope, wanted: frozenset[str]) -> Cut:
    pending, taken = sorted(wanted), dict[str, ast.FunctionDef]()
    names, dotted = set[str](), dict[str, int]()
    called: dict[str, set[str]] = {}
    while pending:
        name = pending.pop()
        if name in taken:
            continue
        if name not in scope.functions:
            raise CutError(f"the kernel {name} is not a @triton.jit function at module level")
        function = scope.function(name)
        taken[name] = function.bare
        names |= function.names
        dotted |= function.dotted
        called[name] = function.names & scope.functions.keys()
        pending += sorted(called[name])
    for name in sorted(called):
        if name in _reached(called, name):
            raise CutError(f"line {taken[name].lineno}: {name} calls itself; a kernel has no recursion")
    body: list[ast.stmt] = [*scope.prelude(names)]
    body += [taken[name] for name in scope.functions if name in taken]
    module = ast.Module(body=body, type_ignores=[])
    text = ast.unparse(ast.fix_missing_locations(module)) + "\n"
    return Cut(text, _lines(text, body), tuple(taken), dict(sorted(dotted.items())))


def _reached(called: Mapping[str, set[str]], name: str) -> set[str]:
    """What a function calls, directly or not."""
    found, pending = set[str](), set(called[name])
    while pending:
        found |= pending
        pending = {inner for each in pending for inner in called[each]} - found
    return found


def _lines(text: str, body: list[ast.stmt]) -> dict[int, int]:
    """Both trees have the same statements in the same order: pair their lines."""
    made, given = _statements(ast.parse(text).body), _statements(body)
    return {new.lineno: old.lineno for new, old in zip(made, given, strict=True)}


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, field, []))


class Scope:
    """The names of a source's module level: imports from Triton, constants, jit functions.

    Attributes:
        cuts: modules that were cut from it before, by the functions that were wanted.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.cuts: dict[frozenset[str], Cut] = {}
        self.aliases: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.constexprs: set[str] = set()
        self.unread: dict[str, int] = {}  # assigned, but only running the module tells what: name → line
        self.functions: dict[str, ast.FunctionDef] = {}
        self._bare: dict[str, _Function] = {}
        self._called_jit = {
            node.args[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and node.args
            and isinstance(node.args[0], ast.Name)
            and _names_jit(node.func)
        }
        for node in tree.body:
            self._read(node)
        for each in ast.walk(tree):
            if isinstance(each, ast.Global):
                for name in each.names:
                    self._unreadable(name, each.lineno)

    def dotted(self, node: ast.expr) -> str | None:
        """Full name of an imported name or an attribute of one."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            left = self.dotted(node.value)
            return f"{left}.{node.attr}" if left else None
        return None

    def function(self, name: str) -> _Function:
        """A jit function, made ready to stand in a cut module."""
        if name not in self._bare:
            self._bare[name] = _Function(self, self.functions[name])
        return self._bare[name]

    def prelude(self, names: set[str]) -> Iterator[ast.stmt]:
        """Imports and constants that the functions use."""
        yield from ast.parse(f"import triton as {OURS}").body
        for name in sorted(names & self.aliases.keys()):
            path, _, leaf = self.aliases[name].rpartition(".")
            yield from ast.parse(
                f"from {path} import {leaf} as {name}" if path else f"import {leaf} as {name}"
            ).body
        for name in sorted(names & self.values.keys()):
            literal = _literal(self.values[name])
            wrapped = f"{OURS}.language.constexpr({literal})" if name in self.constexprs else literal
            yield from ast.parse(f"{name} = {wrapped}").body

    def _read(self, node: ast.stmt) -> None:
        match node:
            case ast.Import(names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    self._bind(alias.asname or top, alias.name if alias.asname else top)
            case ast.ImportFrom(module, names):
                for alias in names:
                    self._bind(alias.asname or alias.name, f"{module}.{alias.name}")
            case ast.Try(body):
                for statement in body:
                    self._read(statement)
            case ast.FunctionDef(name):
                if name in self._called_jit or any(
                    _names_jit(decorator) for decorator in node.decorator_list
                ):
                    self._forget(name)
                    self.functions[name] = node
                else:
                    self._forget(name)
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value) if value:
                declared = isinstance(node, ast.AnnAssign) and _ends(node.annotation, "constexpr")
                self._assign(name, value, declared, node.lineno)
            case ast.If() if not lints.runs_never(node):
                self._read_either(node)
            case ast.Assign() | ast.AugAssign() | ast.For() | ast.While() | ast.With() | ast.Delete():
                for name in _stored(node):
                    self._unreadable(name, node.lineno)

    def _read_either(self, node: ast.If) -> None:
        """Only running the module tells which branch is taken: jit functions of one branch alone are read."""
        inside = [each for each in (*node.body, *node.orelse) if isinstance(each, ast.FunctionDef)]
        names = [each.name for each in inside]
        once = [each for each in inside if names.count(each.name) == 1 and each.name not in self.functions]
        for name in (*_stored(node), *names):
            self._unreadable(name, node.lineno)
        for each in once:
            self._read(each)

    def _unreadable(self, name: str, line: int) -> None:
        self._forget(name)
        self.unread[name] = line

    def _bind(self, name: str, path: str) -> None:
        self._forget(name)
        if path.partition(".")[0] in ("triton", "math"):
            self.aliases[name] = path

    def _assign(self, name: str, value: ast.expr, declared: bool, line: int) -> None:
        self._forget(name)
        path = self.dotted(value)
        if path and path.startswith("triton."):
            self.aliases[name] = path
            return
        if isinstance(value, ast.Call) and _ends(value.func, "constexpr") and len(value.args) == 1:
            declared, value = True, value.args[0]
        inner = self.dotted(value)
        try:
            if inner and inner.startswith("triton.language."):
                self.values[name] = _Dotted(inner)
            else:
                self.values[name] = value_of(value, self.values, self.dotted)
        except NotConstant:
            self.unread[name] = line
            return
        if declared:
            self.constexprs.add(name)

    def _forget(self, name: str) -> None:
        """A later binding replaces an earlier one."""
        for table in (self.aliases, self.values, self.unread, self.functions):
            table.pop(name, None)
        self.constexprs.discard(name)


def _stored(node: ast.AST) -> list[str]:
    """Names that a statement may bind anew, or unbind."""
    found = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return [each.id for each in found if not isinstance(each.ctx, ast.Load)]


@dataclass(frozen=True)
class _Dotted:
    """A constant that is something of Triton's, e.g. ``tl.float32``."""

    path: str


def _literal(value: Any) -> str:
    if isinstance(value, _Dotted):
        return f"{OURS}.{value.path.removeprefix('triton.')}"
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f"float({str(value)!r})"
    if isinstance(value, tuple):
        return f"({''.join(_literal(item) + ', ' for item in value)})"
    return repr(value)


class _Function:
    """One jit function: ``bare`` (no decorators but ours), and the names it uses from outside."""

    def __init__(self, scope: Scope, node: ast.FunctionDef) -> None:
        self._scope = scope
        self.names: set[str] = set()
        self.dotted: dict[str, int] = {}
        self.bare = copy.deepcopy(node)
        self.bare.decorator_list = [_decorator(node)]
        self.bare.returns = None
        if isinstance(self.bare.body[0], ast.Expr) and isinstance(self.bare.body[0].value, ast.Constant):
            self.bare.body = self.bare.body[1:] or [ast.Pass(lineno=node.lineno, col_offset=0)]
        self._strip_arguments(self.bare.args)
        self._local = {name.arg for name in ast.walk(self.bare.args) if isinstance(name, ast.arg)}
        inside = [inner for statement in self.bare.body for inner in ast.walk(statement)]
        self._local |= {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for inner in inside:
            self._check(inner)

    def _strip_arguments(self, arguments: ast.arguments) -> None:
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
        for arg in every:
            path = self._scope.dotted(arg.annotation) if arg.annotation else None
            if path is None or not path.startswith("triton.language."):
                arg.annotation = None
            elif arg.annotation:
                self._use(arg.annotation)
        arguments.defaults = [self._default(node) for node in arguments.defaults]
        arguments.kw_defaults = [self._default(node) if node else None for node in arguments.kw_defaults]

    def _default(self, node: ast.expr) -> ast.expr:
        path = self._scope.dotted(node)
        if path and path.startswith("triton.language."):
            self._use(node)
            return node
        if isinstance(node, ast.Name) and node.id in self._scope.functions:
            return ast.Constant(None)  # the launch gives it, or a call inside does
        try:
            value = value_of(node, self._scope.values, self._scope.dotted)
        except NotConstant:
            raise CutError(
                f"line {node.lineno}: the default {ast.unparse(node)[:60]} is not a constant"
            ) from None
        return ast.parse(_literal(value), mode="eval").body

    def _use(self, node: ast.expr) -> None:
        path = self._scope.dotted(node)
        if path:
            self.dotted[path] = node.lineno
        self.names |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, _NO_DEVICE_CODE):
            raise CutError(f"line {node.lineno}: {type(node).__name__} cannot stand in a kernel")
        if isinstance(node, ast.Attribute):
            self._check_attribute(node)
        elif isinstance(node, ast.Name) and node.id not in self._local:
            self._check_name(node)

    def _check_attribute(self, node: ast.Attribute) -> None:
        if node.attr.startswith("_") or (node.attr in HIDDEN and not self._scope.dotted(node)):
            raise CutError(f"line {node.lineno}: the attribute .{node.attr} cannot be used in a kernel")
        path = self._scope.dotted(node) if _root(node) not in self._local else None
        if path:
            self.dotted[path] = node.lineno
        if isinstance(node.value, ast.Name) and node.value.id in self._scope.functions:
            raise CutError(
                f"line {node.lineno}: a kernel cannot use attributes of the function {node.value.id}"
            )

    def _check_name(self, node: ast.Name) -> None:
        scope, name = self._scope, node.id
        if name == OURS:
            raise CutError(f"line {node.lineno}: the name {OURS} is taken")
        if name in scope.aliases or name in scope.values or name in scope.functions:
            self.names.add(name)
            if name in scope.aliases:
                self.dotted.setdefault(scope.aliases[name], node.lineno)
        elif name in scope.unread:
            raise CutError(
                f"line {node.lineno}: {name} (line {scope.unread[name]}) is not a constant that can be read "
                "without running the module; pass it as a tl.constexpr argument"
            )
        elif name not in BUILTINS:
            raise CutError(f"line {node.lineno}: {name} is neither device code nor a constant of this file")


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _names_jit(node: ast.expr) -> bool:
    return _ends(node.func if isinstance(node, ast.Call) else node, "jit")


def _ends(node: ast.expr, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name) or (
        isinstance(node, ast.Name) and node.id == name
    )


def _decorator(node: ast.FunctionDef) -> ast.expr:
    """``@triton.jit``, with the one of its options that changes what is compiled."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _names_jit(decorator):
            for keyword in decorator.keywords:
                if (
                    keyword.arg == "noinline"
                    and isinstance(keyword.value, ast.Constant)
                    and keyword.value.value
                ):
                    return ast.parse(f"{OURS}.jit(noinline=True)", mode="eval").body
    return ast.parse(f"{OURS}.jit", mode="eval").body
