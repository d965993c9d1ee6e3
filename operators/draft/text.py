"""The finished text: head comment, the small functions that are used, indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence

FUNCTIONS = {
    "from_bfloat16": """static inline float from_bfloat16(uint16_t half) {
    const uint32_t bits = uint32_t(half) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}""",
    "to_bfloat16": """static inline uint16_t to_bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}""",
    "from_float16": """static inline float from_float16(uint16_t half) {
    _Float16 value;
    memcpy(&value, &half, 2);
    return float(value);
}""",
    "to_float16": """static inline uint16_t to_float16(float value) {
    const _Float16 narrow = _Float16(value);
    uint16_t half;
    memcpy(&half, &narrow, 2);
    return half;
}""",
    "floor_div": """static inline int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}""",
    "ceil_div": """static inline int64_t ceil_div(int64_t a, int64_t b) {
    return a > 0 ? (a + b - 1) / b : a / b;
}""",
    "at_least": """static inline int64_t at_least(int64_t a, int64_t b) {
    return a > b ? a : b;
}""",
    "at_most": """static inline int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}""",
    "from_end": """static inline int64_t from_end(int64_t place, int64_t extent) {
    return place < 0 ? place + extent : place;
}""",
    "remainder_of": """static inline float remainder_of(float a, float b) {
    const float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline double remainder_of(double a, double b) {
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline int64_t remainder_of(int64_t a, int64_t b) {
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
}
HEADERS = {
    "cfloat": r"\bFLT_MAX\b",
    "cmath": r"\b(?:\w+f|exp|log|sqrt|pow|tanh|erf|floor|fmod|isinf|isfinite)\(|\bINFINITY\b|\bNAN\b",
    "cstdint": r"",
    "cstdlib": r"\bmalloc\b",
    "cstring": r"\bmemcpy\b",
}


def indented(lines: Sequence[str], depth: int = 0) -> list[str]:
    """Lines with four blanks a brace; pragmas stay at the margin."""
    found = []
    for line in lines:
        if line.startswith("}"):
            depth -= 1
        found.append(line if line.startswith("#") else "    " * depth + line)
        if line.endswith("{"):
            depth += 1
    return found


def assembled(head: Sequence[str], constants: Sequence[str], signature: str, body: Sequence[str]) -> str:
    """The whole source."""
    code = "\n".join(indented(body, 1))
    used = [text for name, text in FUNCTIONS.items() if re.search(rf"\b{name}\(", code)]
    everything = "\n".join([*constants, *used, code])
    headers = [f"#include <{name}>" for name, sign in HEADERS.items() if re.search(sign, everything)]
    parts = [
        "\n".join([*(f"// {line}" for line in head), *headers]),
        *(["\n".join(constants)] if constants else []),
        *used,
        f"{signature} {{\n{code}\n}}\n",
    ]
    return "\n\n".join(parts)
