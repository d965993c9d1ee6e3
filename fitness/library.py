"""What a built shared library contains, read from what the loader reads: its program headers.

Everything that would run or be looked up before the entry is called is a fault. Section headers are not
trusted for that: the loader never looks at them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

ALLOWED = ("libgomp.so", "libm.so", "libmvec.so", "libc.so", "libstdc++.so", "libgcc_s.so", "ld-linux")
ENTRY = "kernel_function"
_RUNS_EARLY = {
    "DT_INIT": "an init function",
    "DT_INIT_ARRAY": "a static initialiser (a global object with a constructor?)",
    "DT_PREINIT_ARRAY": "a static initialiser",
    "DT_FINI": "a function that runs at the end",
    "DT_FINI_ARRAY": "a function that runs at the end",
}
_LOOKS_ELSEWHERE = ("DT_RPATH", "DT_RUNPATH", "DT_AUDIT", "DT_DEPAUDIT", "DT_FILTER", "DT_AUXILIARY")
_IRELATIVE = {"EM_X86_64": 37, "EM_AARCH64": 1032}
_TEXTREL = 4
_EXECUTE, _WRITE = 1, 2


def fault(path: Path) -> str | None:
    """Why the library must not be loaded, in one line, else None."""
    return _read(path, _fault, f"{path.name} is not a readable ELF library")


def fingerprint(path: Path) -> str:
    """SHA-256 of what would run: machine code, constants, data, and the names it calls."""
    return _read(path, _fingerprint, "") or hashlib.sha256(path.read_bytes()).hexdigest()


def traits(path: Path) -> dict[str, int]:
    """Static facts: size of the machine code, and whether it calls the vector math library."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        text = elf.get_section_by_name(".text")
        needed: list[str] = [tag.needed for tag in _dynamic(elf) if tag.entry.d_tag == "DT_NEEDED"]
        vector_math = any(name.startswith("libmvec.so") for name in needed)
        return {"text_bytes": int(text["sh_size"]) if text else 0, "vector_math": int(vector_math)}


def _read(path: Path, look: Callable[[ELFFile], str | None], unreadable: str) -> str | None:
    """``look`` at the file; untrusted text drove the compiler that wrote it, so its bytes may be anything."""
    try:
        with path.open("rb") as file:
            return look(ELFFile(file))
    except (ELFError, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        return unreadable


def _dynamic(elf: ELFFile) -> Iterator[Any]:
    for segment in elf.iter_segments():
        if isinstance(segment, DynamicSegment):
            yield from segment.iter_tags()


def _relocations(dynamic: DynamicSegment) -> Iterator[Any]:
    tables: Any = dynamic.get_relocation_tables()
    for table in tables.values():
        yield from table.iter_relocations()


def _fault(elf: ELFFile) -> str | None:
    dynamic = [segment for segment in elf.iter_segments() if isinstance(segment, DynamicSegment)]
    if len(dynamic) != 1 or elf["e_type"] != "ET_DYN":
        return "is not a shared library"
    return _segment_fault(elf) or _tag_fault(elf) or _symbol_fault(elf, dynamic[0])


def _segment_fault(elf: ELFFile) -> str | None:
    stack = None
    for segment in elf.iter_segments():
        kind, flags = segment["p_type"], segment["p_flags"]
        if kind == "PT_GNU_STACK":
            stack = flags
        elif kind == "PT_INTERP":
            return "names a program interpreter"
        elif kind == "PT_LOAD" and flags & _WRITE and flags & _EXECUTE:
            return "has memory that is both writable and executable"
    if stack is None or stack & _EXECUTE:
        return "asks for an executable stack"
    return None


def _tag_fault(elf: ELFFile) -> str | None:
    for tag in _dynamic(elf):
        name, value = tag.entry.d_tag, tag.entry.d_val
        if name in _RUNS_EARLY:
            return f"contains {_RUNS_EARLY[name]}; nothing may run before or after the entry"
        if name in _LOOKS_ELSEWHERE:
            return f"looks for libraries elsewhere ({name})"
        if name == "DT_TEXTREL" or (name == "DT_FLAGS" and value & _TEXTREL):
            return "changes its own code when loaded (TEXTREL)"
        if name == "DT_NEEDED" and not tag.needed.startswith(ALLOWED):
            return f"needs the library {tag.needed}; only the C, C++, OpenMP and math libraries may be used"
    return None


def _symbol_fault(elf: ELFFile, dynamic: DynamicSegment) -> str | None:
    irelative = _IRELATIVE.get(elf["e_machine"])
    if any(entry["r_info_type"] == irelative for entry in _relocations(dynamic)):
        return "contains an IFUNC; nothing may run before the entry"
    entry_found = False
    for symbol in dynamic.iter_symbols():
        kind = symbol["st_info"]["type"]
        if kind in ("STT_GNU_IFUNC", "STT_LOOS"):
            return f"contains an IFUNC ({symbol.name}); nothing may run before the entry"
        if symbol.name == ENTRY and kind == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
            entry_found = True
    return None if entry_found else f'exports no {ENTRY}; is it declared extern "C" and not static?'


def _fingerprint(elf: ELFFile) -> str:
    digest = hashlib.sha256()
    for section in elf.iter_sections():
        kept = section.name.startswith((".text", ".rodata", ".data", ".plt", ".bss", ".tdata", ".tbss"))
        if kept:
            digest.update(f"\0{section.name}\0{section['sh_size']}\0".encode())
            if section["sh_type"] != "SHT_NOBITS":
                digest.update(section.data())
    dynamic = next(segment for segment in elf.iter_segments() if isinstance(segment, DynamicSegment))
    names = [symbol.name for symbol in dynamic.iter_symbols()]
    for entry in _relocations(dynamic):
        symbol = entry["r_info_sym"]
        name = names[symbol] if symbol else ""
        digest.update(f"{entry['r_info_type']} {name} {entry.entry.get('r_addend')}\n".encode())
    return digest.hexdigest()
