"""A cut module and its kernels: from a plan's ``KernelSpec`` to a function called once for each program."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, TensorHandle

from fitness.interpreter.foreign import Foreign
from fitness.interpreter.language import counted
from fitness.plan import Argument, Descriptor, KernelSpec, Pointer, View

FILE = "<kernel>"
DTYPES = {each.name: each for each in vars(tl).values() if isinstance(each, tl.dtype)}

Locate = Callable[[View], torch.Tensor]


def load(text: str) -> ModuleType:
    """Execute a cut module: imports, constants and jit functions.

    Raises:
        Exception: what the text raises.
    """
    lines = text.splitlines(keepends=True)
    linecache.cache[FILE] = (len(text), None, lines, FILE)  # Triton reads the source of functions again
    module = ModuleType("kernel")
    exec(compile(text, FILE, "exec"), vars(module))
    for name, value in list(vars(module).items()):
        if isinstance(value, tl.constexpr):  # arguments that are constants come unwrapped as well
            setattr(module, name, value.value)
    vars(module)["range"] = counted
    return module


def waits(text: str) -> bool:
    """Whether a cut module has loops that may wait for another program."""
    return any(isinstance(node, ast.While) for node in ast.walk(ast.parse(text)))


class Kernel:
    """One specialisation of one jit function.

    Raises:
        ValueError: the module has no such function.
    """

    def __init__(self, spec: KernelSpec, module: ModuleType) -> None:
        function = getattr(module, spec.function, None)
        if not isinstance(function, InterpretedFunction):
            raise ValueError(f"the module has no jit function {spec.function}")
        self._spec = spec
        self._module = module
        self._constants = dict(spec.constants)
        self._call = function.rewrite()
        notes = function.fn.__annotations__
        self._declared = {name for name in spec.parameters if "constexpr" in str(notes.get(name, ""))}

    def launch(
        self, grid: tuple[int, int, int], arguments: Sequence[Argument], locate: Locate, *, backwards: bool
    ) -> None:
        """Run all programs, the first axis fastest; ``backwards``: from the last to the first.

        Raises:
            Exception: what the kernel raises.
        """
        bound = self._bound(arguments, locate)
        builder = interpreter.interpreter_builder
        builder.set_grid_dim(*grid)
        programs = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
        for program in reversed(programs) if backwards else programs:
            builder.set_grid_idx(*program)
            self._call(**bound)

    def _bound(self, arguments: Sequence[Argument], locate: Locate) -> dict[str, Any]:
        spec = self._spec
        bound = {}
        for index, (name, given) in enumerate(zip(spec.parameters, arguments, strict=True)):
            kind = spec.signature[name]
            if kind == "constexpr":
                value = self._constant(self._constants.get((index,)))
                widen = name not in self._declared and type(value) is int
                bound[name] = scalar(value, tl.int32) if widen else value
            elif not isinstance(kind, str):
                raise Foreign("a tuple of arguments is not interpreted")
            elif isinstance(given, Pointer):
                bound[name] = pointer(locate(given.view), kind)
            elif isinstance(given, Descriptor):
                bound[name] = descriptor(given, locate(given.view))
            else:
                bound[name] = None if given.value is None else scalar(given.value, tl.str_to_ty(kind, None))
        return bound

    def _constant(self, value: Any) -> Any:
        if isinstance(value, dict):
            (what, name), *_ = value.items()
            return {"dtype": DTYPES.get, "function": vars(self._module).get}.get(
                what, lambda n: getattr(torch, n)
            )(name)
        if isinstance(value, (list, tuple)):
            return tuple(self._constant(each) for each in value)
        return value


def scalar(value: float, dtype: Any) -> Any:
    """A number of a type, as a kernel sees it."""
    data = np.array([value]).astype(interpreter._get_np_dtype(dtype) if dtype != tl.bfloat16 else np.float32)
    handle = (
        TensorHandle(data, dtype) if dtype != tl.bfloat16 else interpreter.interpreter_builder.get_bf16(value)
    )
    return tl.tensor(handle, dtype)


def pointer(tensor: torch.Tensor, kind: str) -> Any:
    """The address of a tensor as a pointer of Triton's type ``kind`` ("*bf16")."""
    dtype = tl.str_to_ty(kind, None)
    return tl.tensor(TensorHandle(np.array([tensor.data_ptr()], dtype=np.uint64), dtype), dtype)


def descriptor(given: Descriptor, tensor: torch.Tensor) -> Any:
    """A host-side tensor descriptor."""
    base = pointer(tensor, triton.runtime.jit.mangle_type(tensor))
    extents = [scalar(extent, tl.int32) for extent in given.view.shape]
    strides: list[Any] = [scalar(stride, tl.int64) for stride in given.view.strides]
    strides[-1] = tl.constexpr(1)
    blocks = [tl.constexpr(extent) for extent in given.block]
    semantic = interpreter.interpreter_semantic
    return semantic.make_tensor_descriptor(base, extents, strides, blocks, padding_option=given.padding)
