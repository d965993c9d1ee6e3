"""Reductions and scans as a tree of whole-array steps, which is fast in NumPy and rounds as a device does.

Triton's interpreter calls the combining function once for each element.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import ReduceOps, ScanOps, TensorHandle

from fitness.interpreter.numbers import Array

HALVES = (tl.bfloat16, tl.float16)


class Reduce(ReduceOps):  # type: ignore[misc]
    """tl.reduce."""

    def apply_impl(self, input: tuple[Any, ...]) -> Any:
        """One tensor for each given one, without the reduced axis."""
        first, combine = input[0].handle, self.combine_fn
        plain = len(input) == 1 and first.dtype.scalar not in HALVES and first.data.dtype != np.bool_
        if plain and combine is tl.standard._sum_combine:
            return self.sum(input[0])
        if plain and combine in (tl.standard._elementwise_max, tl.standard._elementwise_min):
            pick = np.fmax if combine is tl.standard._elementwise_max else np.fmin
            return self.to_tensor(
                pick.reduce(first.data, axis=self.axis, keepdims=self.keep_dims), input[0].dtype
            )
        return self.generic_reduce(input) if has_branches(combine) else self._tree(input)

    def _tree(self, input: tuple[Any, ...]) -> list[Any]:
        rank = input[0].handle.data.ndim
        axis = None if self.axis is None else self.axis % rank
        dtypes = [each.dtype for each in input]
        parts = [
            each.handle.data.reshape(-1) if axis is None else np.moveaxis(each.handle.data, axis, 0)
            for each in input
        ]
        while len(parts[0]) > 1:  # a power of two, as all extents of blocks are
            parts = combined(self.combine_fn, [p[::2] for p in parts], [p[1::2] for p in parts], dtypes)
        found = [part[0] for part in parts]
        if self.keep_dims:
            found = [np.reshape(f, (1,) * rank) if axis is None else np.expand_dims(f, axis) for f in found]
        return [self.to_tensor(f, dtype) for f, dtype in zip(found, dtypes, strict=True)]


class Scan(ScanOps):  # type: ignore[misc]
    """tl.associative_scan."""

    def apply_impl(self, input: tuple[Any, ...]) -> list[Any]:
        """One tensor of the same shape for each given one."""
        if has_branches(self.combine_fn):
            found: list[Any] = super().apply_impl(input)
            return found
        axis = self.axis % input[0].handle.data.ndim
        dtypes = [each.dtype for each in input]
        parts = [np.moveaxis(each.handle.data, axis, 0) for each in input]
        if self.reverse:
            parts = [part[::-1] for part in parts]
        step = 1
        while step < len(parts[0]):
            earlier = [np.concatenate([p[:step], p[:-step]]) for p in parts]  # the first ones are thrown away
            joined = combined(self.combine_fn, earlier, parts, dtypes)
            parts = [np.concatenate([p[:step], new[step:]]) for p, new in zip(parts, joined, strict=True)]
            step *= 2
        if self.reverse:
            parts = [part[::-1] for part in parts]
        whole = [np.ascontiguousarray(np.moveaxis(part, 0, axis)) for part in parts]
        return [self.to_tensor(part, dtype) for part, dtype in zip(whole, dtypes, strict=True)]


def combined(combine: Any, left: list[Array], right: list[Array], dtypes: list[Any]) -> list[Array]:
    """The combining function on arrays of pairs."""
    arguments = [
        as_tensor(data, dtype) for side in (left, right) for data, dtype in zip(side, dtypes, strict=True)
    ]
    found = combine(*arguments)
    results = found if isinstance(found, (tuple, tl.tuple)) else (found,)
    return [
        np.broadcast_to(each.handle.data if isinstance(each, tl.tensor) else each, like.shape).astype(
            like.dtype
        )
        for each, like in zip(results, left, strict=True)
    ]


def as_tensor(data: Array, dtype: Any) -> Any:
    """A block of numbers as kernels see it."""
    data = np.ascontiguousarray(data)
    return tl.tensor(TensorHandle(data, dtype), tl.block_type(dtype, list(data.shape)))


@cache
def has_branches(combine: Any) -> bool:
    """Whether a combining function decides by the values it is given: then it takes one pair at a time."""
    if combine.fn.__module__.startswith("triton."):
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(combine.fn)))
    return any(isinstance(node, (ast.If, ast.IfExp, ast.While)) for node in ast.walk(tree))
