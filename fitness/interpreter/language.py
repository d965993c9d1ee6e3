"""Installs the mended interpreter in Triton, once, before anything of a candidate is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import cuda, libdevice
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from fitness.interpreter import logic
from fitness.interpreter.arithmetic import Hardware
from fitness.interpreter.reductions import Reduce, Scan

PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")  # what the CUDA backend takes


def install() -> None:
    """Make Triton's interpreter compute as ``fitness.interpreter`` says."""
    np.seterr(all="ignore")
    builder = interpreter.interpreter_builder
    builder.__class__ = Hardware
    builder.options = dataclasses.replace(builder.options, allowed_dot_input_precisions=PRECISIONS)
    interpreter.ReduceOps, interpreter.ScanOps = Reduce, Scan
    interpreter.FunctionRewriter.ast_transformer = logic.Transformer()
    vars(interpreter).update(
        logic.FUNCTIONS
    )  # Triton copies its names to where a rewritten kernel finds them
    scope = interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    _patch_device_functions(builder, scope)
    tl.range = tl.core.range = counted
    # Triton patches its language before each call and takes it back after each launch; this stays.
    interpreter._patch_lang = lambda _function: SimpleNamespace(restore=lambda: None)
    interpreter.TensorDescHandle.materialize_pointers = _pointers


def _patch_device_functions(builder: Any, scope: Any) -> None:
    """libdevice by its two names: the stubs that kernels import, and the CUDA functions behind them."""
    modules: list[ModuleType] = [cuda, cuda.libdevice, cuda.utils]
    if hasattr(cuda, "gdc"):
        modules.append(cuda.gdc)
    for module in modules:
        interpreter._patch_builtin(module, builder, scope)
    for name in vars(libdevice):
        if not name.startswith("_") and hasattr(cuda.libdevice, name):
            setattr(libdevice, name, getattr(cuda.libdevice, name))


def counted(start: Any, end: Any = None, step: Any = 1, **_hints: Any) -> Iterator[Any]:
    """``range`` in a kernel: its variable is a tensor there, with methods and a width."""
    if end is None:
        start, end = 0, start
    step = 1 if step is None else step
    bounds = (start, end, step)
    wide = any(isinstance(b, tl.tensor) and b.dtype.primitive_bitwidth > 32 for b in bounds)
    numbers = range(*(int(getattr(bound, "value", bound)) for bound in map(_plain, bounds)))
    wide = wide or any(abs(n) >= 2**31 for n in (numbers.start, numbers.stop))
    dtype, kind = (tl.int64, np.int64) if wide else (tl.int32, np.int32)
    for number in numbers:
        yield tl.tensor(TensorHandle(np.array([number], dtype=kind), dtype), dtype)


def _plain(bound: Any) -> Any:
    return int(bound.handle.data.item()) if isinstance(bound, tl.tensor) else bound


def _pointers(descriptor: Any, offsets: list[Any]) -> tuple[Any, Any]:
    """Addresses and mask of a descriptor's block; what lies outside its shape is masked."""
    shape = descriptor.block_shape
    item = max(1, descriptor.base.dtype.element_ty.primitive_bitwidth // 8)
    addresses = np.broadcast_to(descriptor.base.data, shape)
    mask = np.ones(shape, dtype=np.bool_)
    for dim, extent in enumerate(shape):
        form = [1] * len(shape)
        form[dim] = extent
        at = (offsets[dim].data.astype(np.int64) + np.arange(extent)).reshape(form)
        stride = descriptor.strides[dim].data.astype(np.int64)
        addresses = addresses + (item * at * stride).astype(np.uint64)
        mask &= (at >= 0) & (at < descriptor.shape[dim].data)
    return TensorHandle(addresses, descriptor.base.dtype.scalar), TensorHandle(mask, tl.int1)
