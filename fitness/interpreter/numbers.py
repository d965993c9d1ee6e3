"""Number formats that NumPy lacks: bfloat16 and float8 as bits, and what tensor cores truncate."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

FLOAT8 = {"fp8e4nv": (torch.float8_e4m3fn, 448.0), "fp8e5": (torch.float8_e5m2, 57344.0)}


def widened(bits: Array) -> Array:
    """bfloat16 bits as float32, exactly."""
    return np.left_shift(bits, 16, dtype=np.uint32).view(np.float32)


def narrowed(values: Array) -> Array:
    """float32 values as bfloat16 bits, to nearest, ties to even, as the hardware rounds."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FFF), rounded).astype(np.uint16).reshape(np.shape(values))


def truncated(values: Array) -> Array:
    """float32 values as a tensor core reads them in tf32: without the last 13 bits of the mantissa."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def split(values: Array) -> tuple[Array, Array]:
    """float32 values as a sum of two bfloat16 numbers, both in float32."""
    high = widened(narrowed(values))
    return high, widened(narrowed(values - high))


def from_float8(bits: Array, name: str) -> Array:
    """float8 bits as float32, exactly. ``name`` is Triton's name of the type."""
    kind, _ = FLOAT8[name]
    return torch.from_numpy(bits.copy()).view(kind).float().numpy()


def to_float8(values: Array, name: str) -> Array:
    """float32 values as float8 bits, to nearest, saturating, as the hardware's conversion does."""
    kind, largest = FLOAT8[name]
    clipped = torch.from_numpy(np.array(values, dtype=np.float32)).clamp(-largest, largest)
    return clipped.to(kind).view(torch.uint8).numpy()
