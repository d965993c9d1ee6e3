"""The second child: makes a binary from a cut module and launch data. It never sees host code.

What it reads was made by the cut (from the syntax tree) and by the tracing child (JSON, checked by a schema).
Torch is not imported here: a process without it is a sixth of the size, and forks in a seventh of the time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from fitness.lowering.facts import Facts
from fitness.lowering.refusal import one_line
from fitness.plan import KernelSpec

Json = dict[str, Any]
PLAIN = (int, float, bool, str, type(None))
LIBDEVICE = tuple(f"triton.language.extra.{middle}libdevice" for middle in ("", "cuda.", "hip."))
KEPT = frozenset({"cubin", "hsaco", "json", "ptx", "amdgcn"})
TRAITS = {
    "registers": r"Used (\d+) registers",
    "spill_store_bytes": r"(\d+) bytes spill stores",
    "spill_load_bytes": r"(\d+) bytes spill loads",
    "stack_bytes": r"(\d+) bytes stack frame",
}


class Uncompilable(Exception):
    """The compiler's word, shortened, with the line of the cut module if it names one."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def target_of(facts: Facts) -> GPUTarget:
    """What Triton calls the architecture."""
    arch: Any = int(facts.arch.removeprefix("sm_")) if facts.backend == "cuda" else facts.arch
    return GPUTarget(facts.backend, arch, facts.warp)


def compile_one(folder: Path, text: str, dotted: Mapping[str, int], spec: KernelSpec, facts: Facts) -> Json:
    """The binary of one specialisation: {"binary": …}, or {"reason", "line"}.

    Args:
        folder: where the module is written and the binary's files are left.
        text: the cut module.
        dotted: names of Triton's that it uses → line of the source; refused where they are not its language.
        spec: what to compile.
        facts: of the card compiled for.
    """
    try:
        check_names(dotted)
        return {"binary": _compiled(_module(folder, text), spec, facts, folder)}
    except Uncompilable as why:
        return {"reason": str(why), "line": why.line}


def check_names(dotted: Mapping[str, int]) -> None:
    """Refuse names that are not Triton's language.

    Raises:
        Uncompilable: a name does not exist, or is Python that a kernel must not reach.
    """
    for path, line in dotted.items():
        root, *parts = path.split(".")
        found: Any = {"triton": triton, "math": math}.get(root)
        for part in parts:
            try:
                found = getattr(found, part)
            except AttributeError:
                raise Uncompilable(f"line {line}: this Triton has no {path}") from None
        if root != "math" and not _in_language(found):
            raise Uncompilable(
                f"line {line}: {path} is not part of Triton's language; a kernel cannot use it"
            )


def _in_language(found: Any) -> bool:
    if isinstance(found, ModuleType):
        return found.__name__ == "triton" or found.__name__.startswith("triton.language")
    if found is tl.core.extern_elementwise:
        return False  # it links libraries by path
    if isinstance(found, (JITFunction, tl.dtype, tl.constexpr, *PLAIN)) or tl.core.is_builtin(found):
        return True
    if found is tl.PropagateNan or isinstance(found, tl.PropagateNan):
        return True  # an enum of Triton's C++ half
    home = getattr(found, "__module__", "") or ""
    if home in LIBDEVICE or found in (triton.cdiv, triton.next_power_of_2):
        return True
    known = isinstance(found, type) or type(found).__name__ == "ConstexprFunction"
    return known and home.startswith("triton.language")


def _module(folder: Path, text: str) -> ModuleType:
    path = folder / "device.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("device", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["device"] = module
    try:
        spec.loader.exec_module(module)
    except (ImportError, AttributeError) as why:
        raise Uncompilable(f"this Triton lacks something the kernel imports: {one_line(why)}") from why
    return module


def _compiled(module: ModuleType, spec: KernelSpec, facts: Facts, folder: Path) -> Json:
    function = getattr(module, spec.function)
    constants = {path: _constant(value, module) for path, value in spec.constants}
    attributes = {path: [list(pair) for pair in value] for path, value in spec.attributes}
    signature = {name: _tupled(kind) for name, kind in spec.signature.items()}
    target = target_of(facts)
    log = io.StringIO()
    try:
        with contextlib.redirect_stdout(log):
            options = make_backend(target).parse_options(dict(spec.options))
            source = ASTSource(function, signature, constants, attributes)
            kernel = triton.compile(source, target=target, options=options.__dict__)
    except CompilationError as why:
        raise _compiler_said(why, module) from why
    except PTXASError as why:
        raise Uncompilable(f"{spec.function}: the assembler says: {_assembler_said(why)}"[:400]) from why
    except OutOfResources as why:
        raise Uncompilable(f"{spec.function}: {one_line(why)}") from why
    except Exception as why:  # the compiler raises whatever it meets
        raise Uncompilable(f"{spec.function}: {one_line(why)}") from why
    shared = int(kernel.metadata.shared)
    if shared > facts.shared:
        raise Uncompilable(
            f"{spec.function} needs {shared} bytes of shared memory; one on {facts.arch} has {facts.shared}"
        )
    return _binary(kernel, log.getvalue(), folder, shared)


def _binary(kernel: Any, log: str, folder: Path, shared: int) -> Json:
    files = {}
    extension = "cubin" if "cubin" in kernel.asm else "hsaco"
    sha = hashlib.sha256(kernel.asm[extension]).hexdigest()
    for name, path in kernel.metadata_group.items():
        kind = name.rpartition(".")[2]
        if kind in KEPT:
            kept = f"{kernel.name[:80]}-{sha[:16]}.{kind}"
            (folder / kept).write_bytes(Path(path).read_bytes())
            files[kind] = kept
    metadata = json.loads((folder / files["json"]).read_text())
    return {"name": kernel.name, "sha": sha, "files": files, "metadata": metadata,
            "traits": {"shared_bytes": shared, **_traits(log)}}  # fmt: skip


def _traits(log: str) -> dict[str, int]:
    found = {name: re.findall(pattern, log) for name, pattern in TRAITS.items()}
    return {name: max(map(int, numbers)) for name, numbers in found.items() if numbers}


def _constant(value: Any, module: ModuleType) -> Any:
    if isinstance(value, dict):
        if "function" in value:
            return getattr(module, value["function"])
        if "dtype" in value:
            return tl.dtype(value["dtype"])
        import torch  # here: next to no kernel has a constant that is a dtype of torch's

        found = getattr(torch, value["torch"], None)
        if not isinstance(found, torch.dtype):
            raise Uncompilable(f"torch.{value['torch']} is no dtype")
        return found
    return tuple(_constant(item, module) for item in value) if isinstance(value, (list, tuple)) else value


def _tupled(kind: Any) -> Any:
    return tuple(_tupled(item) for item in kind) if isinstance(kind, (list, tuple)) else kind


def _compiler_said(why: CompilationError, module: ModuleType) -> Uncompilable:
    """The innermost error of the code generator: its text, and the innermost line of the cut module."""
    chain = [why]
    inner: BaseException = why
    while inner.__cause__ is not None:
        inner = inner.__cause__
        if isinstance(inner, CompilationError):
            chain.append(inner)
    last = chain[-1]
    message = last.error_message or (one_line(inner) if inner is not last else "")
    if not message:
        message = str(last).strip().splitlines()[-1]
    message = re.sub(r"^\w+\((['\"])(.*)\1\)$", r"\2", str(message))  # some come as the text of an exception
    lines = (line for error in reversed(chain) if (line := _line_in(module, error)) is not None)
    return Uncompilable(" ".join(str(message).split())[:400], next(lines, None))


def _line_in(module: ModuleType, error: CompilationError) -> int | None:
    """Where an error lies in the cut module; None: elsewhere, as in a function of Triton's own."""
    line = getattr(error.node, "lineno", None)
    for found in vars(module).values():
        if isinstance(found, JITFunction) and found.src == error.src and line is not None:
            first = next(index for index, row in enumerate(found.raw_src) if row.startswith("def "))
            return int(found.starting_line_number + first + line - 1)
    return None


def _assembler_said(why: Exception) -> str:
    """What was wrong, without the paths and the commands around it."""
    found = re.findall(r"(?<!PTXAS )\b(?:error|fatal)\s*:\s*(.+)", str(why))
    return "; ".join(dict.fromkeys(" ".join(text.split()) for text in found[:2])) or one_line(why)
