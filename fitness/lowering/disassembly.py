"""Counts a binary's instructions by what Triton's own disassembler calls them.

An instruction is sixteen bytes; which one it is stands in its lowest twelve bits, and the width of an access
in three more. The disassembler takes a third of a second whatever it is given, so it is only shown one
instruction of each kind that was never seen before; what it says is kept, per machine. After a few kernels
nothing is run any more, and a binary costs a millisecond. (On sm_100 FFMA and FHFMA share a number, and FADD
and FHADD; each pair is of one class.)

The bytes come from a child that compiled what a candidate wrote, so the disassembler runs in the sandbox.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import struct
import subprocess
import tempfile
import threading
from collections import Counter
from importlib import metadata
from itertools import islice
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from pydantic import TypeAdapter, ValidationError

from fitness import native
from fitness.kept import keep

Word = tuple[str, int | None]  # name without modifiers, and bits of a global access
NAMES = {"sm_80": "SM80", "sm_86": "SM86", "sm_89": "SM89", "sm_90": "SM90a", "sm_100": "SM100a",
         "sm_120": "SM120a"}  # fmt: skip
ITEM = 16
MOST_CODE = 8 << 20  # bytes of code that are looked at
BATCH = 256  # instructions shown at once: what the sandbox passes on is limited
WALL_S, CPU_S, MEMORY = 30, 20, 1 << 30
UNKNOWN: Word = ("?", None)
_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)((?:\.\w+)*)")
_ILLEGAL = re.compile(r"at address 0x([0-9a-f]+)")
_BITS = re.compile(r"\.[US]?(8|16|32|64|128|256)(?=\.|$)")
_GLOBAL = ("LD", "LDG", "LDGSTS", "ST", "STG")
_WORDS = TypeAdapter(dict[int, tuple[str, int | None]])


class Disassembly:
    """Knows the instructions of one architecture; one may be used from several threads at once.

    Args:
        arch: as users write it.
        sandboxed: False only on the user's word.
    """

    def __init__(self, arch: str, *, sandboxed: bool = True) -> None:
        self._name = NAMES.get(arch)  # None: no NVIDIA card that the disassembler knows
        self._tool = disassembler()
        self._sandboxed = sandboxed
        self._lock = threading.Lock()
        folder = native.cache_folder() / "instructions"
        self._kept = folder / f"{arch}-{metadata.version('triton')}.json"
        self._words: dict[int, Word] = _read(self._kept)

    def count(self, cubin: bytes) -> Counter[Word] | None:
        """How often each instruction stands in a binary's code; None where nobody can say."""
        items = _items(cubin)
        if self._name is None or self._tool is None or not items:
            return None
        keys = Counter(map(_key, items))
        if not keys.keys() <= self._words.keys():
            with self._lock:  # one asks, others that know all of theirs go on
                if not self._learnt(items, keys):
                    return None
        words = self._words
        found: Counter[Word] = Counter()
        for key, number in keys.items():
            found[words[key]] += number
        return found

    def _learnt(self, items: list[tuple[int, int]], keys: Counter[int]) -> bool:
        """Whether the disassembler could be asked about the instructions that were never seen before."""
        missing = keys.keys() - self._words.keys()
        new = {key: item for item in items if (key := _key(item)) in missing}
        todo = iter(new.items())
        while batch := dict(islice(todo, BATCH)):
            words = self._asked(batch)
            if words is None:
                return False
            self._words = self._words | words  # never changed in place: others read it
        if not new:
            return True  # another thread has asked
        self._words = self._words | _read(self._kept)  # another process may have learnt others
        surely = {key: word for key, word in self._words.items() if word != UNKNOWN}
        keep(self._kept, json.dumps(surely).encode())
        return True

    def _asked(self, batch: dict[int, tuple[int, int]]) -> dict[int, Word] | None:
        """What the disassembler calls them; those that it refuses are unknown. None: it does not run."""
        left, refused = dict(batch), dict[int, Word]()
        for _ in range(3):
            said = self._said(b"".join(struct.pack("<QQ", *item) for item in left.values()))
            if said is None:
                return None
            order = list(left)
            illegal = {
                order[int(at, 16) // ITEM]
                for at in _ILLEGAL.findall(said)
                if int(at, 16) // ITEM < len(order)
            }
            if not illegal:
                told = {int(at, 16) // ITEM: _word(name, rest) for at, name, rest in _LINE.findall(said)}
                return refused | {key: told.get(index, UNKNOWN) for index, key in enumerate(order)}
            refused |= dict.fromkeys(illegal, UNKNOWN)
            left = {key: item for key, item in left.items() if key not in illegal}
            if not left:
                return refused
        return None

    def _said(self, code: bytes) -> str | None:
        assert self._name is not None and self._tool is not None
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "code.bin").write_bytes(code)
            limits = ["--wall", str(WALL_S), "--cpu", str(CPU_S), "--memory", str(MEMORY)]
            order = ["--scratch", scratch, *limits, "--parent", str(os.getpid())]
            order += ["--read", str(self._tool.parent)]
            order += [] if self._sandboxed else ["--unsandboxed"]
            command = [str(self._tool), "-ndf", "-b", self._name, "code.bin"]
            try:
                done = subprocess.run(
                    [native.tool("sandbox"), *order, "--", *command],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env={},
                    timeout=WALL_S + 30,
                )
            except (OSError, subprocess.SubprocessError):
                return None
        said = done.stdout.decode(errors="replace")
        return said if done.returncode == 0 or _ILLEGAL.search(said) else None


def disassembler() -> Path | None:
    """The one that Triton brings; None where there is none."""
    spec = importlib.util.find_spec("triton")
    for home in (spec.submodule_search_locations or []) if spec else []:
        path = Path(home).resolve() / "backends" / "nvidia" / "bin" / "nvdisasm"
        if os.access(path, os.X_OK):
            return path
    return None


def _items(cubin: bytes) -> list[tuple[int, int]]:
    """All instructions, as two words each; none where it is no binary with a sensible amount of code."""
    items: list[tuple[int, int]] = []
    try:
        for section in ELFFile(io.BytesIO(cubin)).iter_sections():
            if section.name.startswith(".text."):
                start = int(section["sh_offset"])
                code = cubin[start : start + int(section["sh_size"])]
                if (len(items) * ITEM) + len(code) > MOST_CODE:
                    return []
                items += struct.iter_unpack("<QQ", code[: len(code) // ITEM * ITEM])
    except (ELFError, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        return []  # candidates' text drove the compiler that wrote it: its bytes may be anything
    return items


def _key(item: tuple[int, int]) -> int:
    low, high = item
    return (low & 0xFFF) << 3 | high >> 9 & 7


def _word(name: str, modifiers: str) -> Word:
    if name not in _GLOBAL:
        return name, None
    bits = _BITS.findall(modifiers)
    return name, max(map(int, bits), default=32)


def _read(path: Path) -> dict[int, Word]:
    """What was kept; nothing where there is none, or where it is damaged."""
    try:
        return dict(_WORDS.validate_json(path.read_bytes()))
    except (OSError, ValidationError):
        return {}
