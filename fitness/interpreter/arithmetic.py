"""The interpreter's builder with the arithmetic of a GPU: rounded bfloat16, tensor-core products, fused adds.

Triton's interpreter keeps a bfloat16 as its 16 bits and would add and compare those as integers; it truncates
where the hardware rounds to nearest. Here every operation on bfloat16 is done in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from fitness.interpreter.assembly import assembled
from fitness.interpreter.foreign import Foreign
from fitness.interpreter.libdevice import device_function
from fitness.interpreter.numbers import (
    FLOAT8,
    Array,
    from_float8,
    narrowed,
    split,
    to_float8,
    truncated,
    widened,
)

Op = Callable[..., Array]


class Results:
    """What inline assembly returns: several values, asked for by number."""

    def __init__(self, handles: list[TensorHandle]) -> None:
        self._handles = handles

    def get_result(self, index: int) -> TensorHandle:
        """One of them."""
        return self._handles[index]


class Hardware(InterpreterBuilder):  # type: ignore[misc]
    """Triton's interpreter builder, mended. Methods are named by Triton."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("create_", "get_")):
            raise Foreign(f"{name.removeprefix('create_').removeprefix('get_')} is not interpreted")
        raise AttributeError(name)

    # -- constants and casts ---------------------------------------------------------------------------------

    def get_bf16(self, value: float) -> TensorHandle:
        """A constant."""
        return TensorHandle(narrowed(np.array([value], dtype=np.float32)), tl.bfloat16)

    def cast_impl(self, src: TensorHandle, dst_type: Any) -> TensorHandle:
        """Numbers in another type, rounded to nearest."""
        target = dst_type.scalar
        if target == src.dtype.scalar:
            return TensorHandle(src.data, target)
        data = values(src)
        if target == tl.bfloat16:
            return TensorHandle(narrowed(data.astype(np.float32)), target)
        return TensorHandle(data.astype(np_dtype(target)), target)

    def create_fp_to_fp(self, src: TensorHandle, dst_type: Any, rounding_mode: Any) -> TensorHandle:
        """The same, with a rounding mode; to float8 it saturates."""
        target, towards_zero = dst_type.scalar, rounding_mode == ir.ROUNDING_MODE.RTZ
        if target.name in FLOAT8 and not towards_zero:
            return TensorHandle(to_float8(values(src), target.name), target)
        if target == tl.bfloat16 and towards_zero:
            bits = np.ascontiguousarray(values(src), dtype=np.float32).view(np.uint32)
            return TensorHandle((bits >> np.uint32(16)).astype(np.uint16), target)
        if target.is_fp8() or (src.dtype.scalar.is_fp8() and src.dtype.scalar.name not in FLOAT8):
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        if target == tl.float16 and towards_zero:
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        return self.cast_impl(src, dst_type)

    # -- one element at a time -------------------------------------------------------------------------------

    def binary_op(self, lhs: TensorHandle, rhs: TensorHandle, op: Op) -> TensorHandle:
        """Two operands element by element; comparisons give bits."""
        dtype = lhs.dtype.scalar
        if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_:
            wrapped = op(lhs.data.astype(np.int8), rhs.data.astype(np.int8))  # one bit that wraps around
            return TensorHandle((wrapped & 1).astype(np.bool_), tl.int1)
        found = op(values(lhs), values(rhs))
        if found.dtype == np.bool_:
            return TensorHandle(found, tl.int1)
        return TensorHandle(packed(found, dtype), dtype)

    def unary_op(self, arg: TensorHandle, op: Op) -> TensorHandle:
        """One operand element by element."""
        dtype = arg.dtype.scalar
        return TensorHandle(packed(op(values(arg)), dtype), dtype)

    def create_minnumf(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        """The smaller one; a number where the other is NaN."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        """The larger one; a number where the other is NaN."""
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(
        self, arg: TensorHandle, lo: TensorHandle, hi: TensorHandle, propagate: Any
    ) -> TensorHandle:
        """Between two bounds."""
        quiet = propagate == ir.PROPAGATE_NAN.NONE
        above = self.binary_op(arg, lo, np.fmax if quiet else np.maximum)
        return self.binary_op(above, hi, np.fmin if quiet else np.minimum)

    def create_fma(self, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        """x * y + z, rounded once."""
        dtype = z.dtype.scalar
        wide = values(x).astype(np.float64) * values(y) + values(z)  # a float32 product is exact in float64
        return TensorHandle(packed(wide, dtype), dtype)

    def create_umulhi(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        """The upper half of an unsigned product."""
        dtype = lhs.data.dtype
        unsigned, bits = np.dtype(f"uint{dtype.itemsize * 8}"), dtype.itemsize * 8
        left, right = (side.data.astype(unsigned).astype(object) for side in (lhs, rhs))
        return TensorHandle(((left * right) >> bits).astype(unsigned).astype(dtype), lhs.dtype.scalar)

    # -- matrix products -------------------------------------------------------------------------------------

    def create_dot(
        self,
        a: TensorHandle,
        b: TensorHandle,
        d: TensorHandle,
        input_precision: Any,
        max_num_imprecise_acc: int,
    ) -> TensorHandle:
        """a @ b + d as tensor cores do it: exact products, summed in the type of d."""
        del max_num_imprecise_acc
        left, right, kind = values(a), values(b), d.data.dtype
        if np.issubdtype(kind, np.integer):
            product = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
        elif a.dtype.scalar == tl.float32:
            product = float32_product(left, right, input_precision)
        else:
            wide = np.float64 if kind == np.float64 else np.float32
            product = np.matmul(left.astype(wide), right.astype(wide))
        return TensorHandle((product + d.data).astype(kind), d.dtype.scalar)

    # -- memory ----------------------------------------------------------------------------------------------

    def create_descriptor_load(self, desc: Any, indices: list[TensorHandle], *policies: Any) -> TensorHandle:
        """A block through a tensor descriptor; padding where it leaves the tensor."""
        pointers, mask = desc.materialize_pointers(indices)
        dtype = pointers.get_element_ty()
        padding = np.nan if desc.padding == ir.PADDING_OPTION.PAD_NAN else 0.0
        other = packed(np.full(pointers.data.shape, padding, dtype=np.float32), dtype)
        found = self.create_masked_load(pointers, as_mask(mask), TensorHandle(other, dtype), *policies, False)
        if getattr(desc, "round_f32_to_tf32", False):
            found = TensorHandle(truncated(found.data), dtype)
        return found

    def create_descriptor_store(self, desc: Any, value: TensorHandle, indices: list[TensorHandle]) -> Any:
        """A block through a tensor descriptor."""
        pointers, mask = desc.materialize_pointers(indices)
        return interpreter._interpreter.store(pointers.data, value.data, as_mask(mask).data)

    def create_descriptor_reduce(
        self, kind: Any, desc: Any, value: TensorHandle, indices: list[TensorHandle]
    ) -> TensorHandle | None:
        """A block added, or alike, through a tensor descriptor."""
        floating = value.dtype.scalar.is_floating()
        name = str(kind).rpartition(".")[2].upper()
        operation = getattr(ir.ATOMIC_OP, "FADD" if name == "ADD" and floating else name, None)
        if operation is None or (floating and name != "ADD"):
            raise Foreign(f"a descriptor's atomic {name.lower()} is not interpreted")
        pointers, mask = desc.materialize_pointers(indices)
        return self.create_atomic_rmw(
            operation, pointers, value, as_mask(mask), ir.MEM_SEMANTIC.RELAXED, None
        )

    def create_atomic_rmw(
        self, rmwOp: Any, ptr: TensorHandle, val: TensorHandle, mask: TensorHandle, sem: Any, scope: Any
    ) -> TensorHandle:
        """Atomics; those on bfloat16 are not Triton's own."""
        if val.dtype.scalar != tl.bfloat16 or rmwOp != ir.ATOMIC_OP.FADD:
            return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)
        before = np.zeros(val.data.shape, dtype=np.uint16)
        shape = val.data.shape
        pointers, masks = np.broadcast_to(ptr.data, shape), np.broadcast_to(mask.data, shape)
        for at in np.ndindex(shape):  # one by one: several may go to one address
            if masks[at]:
                where, yes = pointers[at].reshape(1), np.ones(1, dtype=np.bool_)
                old = interpreter._interpreter.load(where, yes, np.zeros(1, np.uint16), np.dtype(np.uint16))
                new = narrowed(widened(old) + widened(val.data[at].reshape(1)))
                interpreter._interpreter.store(where, new, yes)
                before[at] = old[0]
        return TensorHandle(before, tl.bfloat16)

    # -- what is not Triton's own ----------------------------------------------------------------------------

    def create_extern_elementwise(
        self, libName: str, libPath: str, symbol: str, argList: list[TensorHandle], retType: Any, isPure: bool
    ) -> TensorHandle:
        """A function of libdevice."""
        del libName, libPath, isPure
        found = device_function(symbol)(*(values(handle) for handle in argList))
        return TensorHandle(packed(found, retType.scalar), retType.scalar)

    def create_inline_asm(
        self,
        inlineAsm: str,
        constraints: str,
        args: list[TensorHandle],
        types: list[Any],
        isPure: bool,
        pack: int,
    ) -> Results:
        """Inline assembly."""
        del isPure
        dtypes = [kind.scalar for kind in types]
        found = assembled(inlineAsm, constraints, [h.data for h in args], [np_dtype(d) for d in dtypes], pack)
        return Results([TensorHandle(data, dtype) for data, dtype in zip(found, dtypes, strict=True)])

    def create_barrier(self) -> None:
        """One program runs after the other."""

    def create_grid_dependency_wait(self, *_: Any) -> None:
        """The launch before has ended."""

    def create_grid_dependency_launch_dependents(self, *_: Any) -> None:
        """The next launch begins when this one has ended."""


def float32_product(left: Array, right: Array, precision: Any) -> Array:
    """A product of float32 matrices as tensor cores do it under an ``input_precision``."""
    if precision == ir.INPUT_PRECISION.TF32:
        left, right = truncated(left), truncated(right)
    if precision == getattr(ir.INPUT_PRECISION, "BF16x3", None):
        (a, b), (c, d) = split(left), split(right)
        return np.asarray(np.matmul(a, c) + (np.matmul(a, d) + np.matmul(b, c)))
    return np.asarray(np.matmul(left, right))


def values(handle: TensorHandle) -> Array:
    """The numbers of a handle in a type that NumPy can compute with."""
    dtype = handle.dtype.scalar
    if dtype == tl.bfloat16 and handle.data.dtype == np.uint16:
        return widened(handle.data)
    if handle.data.dtype == np.uint8 and dtype.is_floating() and dtype.name in FLOAT8:
        return from_float8(handle.data, dtype.name)
    data: Array = handle.data
    return data


def packed(found: Array, dtype: Any) -> Array:
    """Numbers as a handle of this Triton type keeps them."""
    if dtype == tl.bfloat16:
        return narrowed(found.astype(np.float32))
    if dtype.is_floating() and dtype.name in FLOAT8:
        return to_float8(found, dtype.name)
    return found.astype(np_dtype(dtype), copy=False)


def np_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy type in which the interpreter keeps a Triton type."""
    kind: np.dtype[Any] = interpreter._get_np_dtype(dtype)
    return kind


def as_mask(mask: Any) -> TensorHandle:
    """A mask as a handle; older versions hand out the bare array."""
    return mask if isinstance(mask, TensorHandle) else TensorHandle(mask, tl.int1)
