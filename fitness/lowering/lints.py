"""What a source must not name: refused before anything runs, with the line.

These are lints. They give clear messages for what could not do harm anyway: host code runs confined, far from
the judge, and whatever it does beside launching is not in the plan.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_MODULES = """
    __future__ abc collections collections.abc contextlib dataclasses enum functools itertools math numbers
    operator os types typing typing_extensions warnings
    torch torch.amp torch.autograd torch.cuda torch.cuda.amp torch.nn torch.nn.functional torch.nn.init
    torch.nn.modules torch.nn.parameter torch.types
    triton triton.runtime triton.runtime.autotuner triton.runtime.driver triton.runtime.jit
    triton.tools.tensor_descriptor
"""
_NAMES = "exec eval compile __import__ open input breakpoint globals locals vars __builtins__"
_ATTRIBUTES = """
    __globals__ __subclasses__ __builtins__ __code__ __closure__ __bases__ __mro__ __loader__ __spec__
    __reduce__ __reduce_ex__ __getattribute__ f_back f_locals f_globals gi_frame cr_frame tb_frame tb_next
"""
_TORCH = """
    compile jit ops utils library hub load save multiprocessing distributed classes package overrides fx
    export from_file mtia xpu mps futures profiler
"""
_TRITON = "compile compiler testing profiler experimental backends"

MODULES = frozenset(_MODULES.split())
LANGUAGE = "triton.language"  # and all below it
NAMES = frozenset(_NAMES.split())
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
OS = frozenset({"environ", "getenv", "path", "cpu_count"})
TORCH = frozenset(_TORCH.split())
TRITON = frozenset(_TRITON.split())
SETTINGS = ("torch.backends.",)  # may be assigned to: nothing reads them here

_LOOKED_AT = (
    ast.Import, ast.ImportFrom, ast.Name, ast.Attribute, ast.Assign, ast.AugAssign, ast.AnnAssign,
    ast.Delete, ast.Call,
)  # fmt: skip


def fault(nodes: Sequence[ast.AST]) -> str | None:
    """The first thing among a source's nodes that must not be there, as ``line N: …``."""
    roots = {"os": "os", "torch": "torch", "triton": "triton"}
    for node in nodes:
        if isinstance(node, ast.Import):
            roots |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for node in nodes:
        if isinstance(node, _LOOKED_AT) and (wrong := _wrong(node, roots)):
            return f"line {getattr(node, 'lineno', 0)}: {wrong}"
    return None


def _wrong(node: ast.AST, roots: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return f"{node.id} is not allowed" if node.id in NAMES and isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Attribute):
        return f".{node.attr} is not allowed" if node.attr in ATTRIBUTES else _attribute(_dotted(node, roots))
    match node:
        case ast.Import(names):
            return next((f"import of {a.name} is not allowed" for a in names if not allowed(a.name)), None)
        case ast.ImportFrom(module, names, level):
            if level or not allowed(module or ""):
                return f"import from {'.' * level}{module or ''} is not allowed"
            return next((text for a in names if (text := _attribute(f"{module}.{a.name}"))), None)
        case ast.Assign(targets):
            return next((text for target in targets if (text := _assigned(target, roots))), None)
        case ast.AugAssign(target) | ast.AnnAssign(target):
            return _assigned(target, roots)
        case ast.Delete(targets):
            return next((text for target in targets if (text := _assigned(target, roots))), None)
        case ast.Call(ast.Name("setattr" | "delattr"), [first, *_]):
            return _assigned(first, roots)
        case ast.Call(ast.Name("getattr"), [first, name, *_]) if _dotted(first, roots):
            path = _dotted(first, roots)
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return _attribute(f"{path}.{name.value}")
            return f"getattr of {path} with a computed name is not allowed"
    return None


def runs_never(node: ast.stmt) -> bool:
    """Whether it is what a file does as a program: candidates are modules, never called __main__."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "__name__ == '__main__'"


def allowed(module: str) -> bool:
    """Whether a candidate may import a module."""
    return module in MODULES or module == LANGUAGE or module.startswith(LANGUAGE + ".")


def _attribute(path: str | None) -> str | None:
    """Why a name of a module's must not be used."""
    if path is None:
        return None
    root, _, rest = path.partition(".")
    first = rest.partition(".")[0]
    named = {"os": first not in OS, "torch": first in TORCH, "triton": first in TRITON}.get(root, False)
    if rest and (named or (root in ("os", "torch", "triton") and _is_private(rest))):
        return f"{path} is not allowed"
    return None


def _is_private(rest: str) -> bool:
    return any(part.startswith("_") and part != "__version__" for part in rest.split("."))


def _assigned(target: ast.expr, roots: dict[str, str]) -> str | None:
    """Why something must not be assigned to: the framework stays as it is."""
    if isinstance(target, ast.Subscript):
        path = _dotted(target.value, roots)
        return "setting environment variables is not allowed" if path == "os.environ" else None
    if isinstance(target, (ast.Tuple, ast.List)):
        return next((text for item in target.elts if (text := _assigned(item, roots))), None)
    path = _dotted(target, roots) if isinstance(target, ast.Attribute) else None
    if path and not path.startswith(SETTINGS):
        return f"assigns to {path}; the framework must stay as it is"
    return None


def _dotted(node: ast.expr, roots: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return roots.get(node.id)
    if isinstance(node, ast.Attribute):
        left = _dotted(node.value, roots)
        return f"{left}.{node.attr}" if left else None
    return None
