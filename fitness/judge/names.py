"""Names of a problem's tensors as C++ arguments: readable where they can be, and never a clash."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

_RESERVED = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t
    size_t ptrdiff_t std main kernel_function shapes NULL NAN INFINITY HUGE_VAL EOF I unix linux
    i386 assert errno stdin stdout stderr
    """
RESERVED = frozenset(_RESERVED.split())


def c_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """One C++ identifier per name, in order.

    Args:
        names: as Python has them, e.g. "layers.0.weight".
        taken: identifiers that are used already.
    """
    used = set(taken)
    chosen: list[str] = []
    for name in names:
        plain = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") or "x"
        if plain[0].isdigit():
            plain = f"p{plain}"
        endings = itertools.chain(["", "_"], (f"_{n}" for n in itertools.count(2)))
        plain = next(p for p in (plain + e for e in endings) if p not in used and not _reserved(p))
        used.add(plain)
        chosen.append(plain)
    return chosen


def output_names(count: int) -> list[str]:
    """``out``, or ``out0``, ``out1``, … where there are several."""
    return ["out"] if count == 1 else [f"out{index}" for index in range(count)]


def _reserved(name: str) -> bool:
    return name in RESERVED or re.fullmatch(r"out\d*", name) is not None
