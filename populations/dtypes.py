"""Element types that kernels may meet: torch's names without "torch.", what C++ calls them, their size."""

from __future__ import annotations

HALVES = ("bfloat16", "float16")
FLOATS = ("float32", "float64", *HALVES)
C_TYPES = {
    "float32": "float", "float64": "double", "bfloat16": "uint16_t", "float16": "uint16_t", "int8": "int8_t",
    "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "bool": "uint8_t",
}  # fmt: skip
ITEM_BYTES = {
    "float32": 4, "float64": 8, "bfloat16": 2, "float16": 2,
    "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1,
}  # fmt: skip
