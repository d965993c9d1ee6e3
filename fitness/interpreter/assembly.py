"""The few PTX instructions that kernels write by hand, on arrays of registers.

A text is a list of statements ``op.type $d, $s, …;`` with registers of its own between braces. One register
holds 32 or 64 bits; where several 16-bit elements are packed into it, the suffix (``f16x2``, ``bf16x2``) says
so.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fitness.interpreter.foreign import Foreign
from fitness.interpreter.libdevice import approximate_tanh
from fitness.interpreter.numbers import Array, narrowed, widened

Operation = Callable[..., Array]

FLOATING: dict[str, Operation] = {
    "tanh": approximate_tanh, "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "rcp": np.reciprocal, "rsqrt": lambda x: 1.0 / np.sqrt(x), "add": np.add, "sub": np.subtract,
    "mul": np.multiply, "div": np.divide, "fma": lambda x, y, z: x * y + z, "mad": lambda x, y, z: x * y + z,
    "min": np.fmin, "max": np.fmax, "neg": np.negative, "abs": np.abs,
}  # fmt: skip
BITWISE: dict[str, Operation] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "shl": np.left_shift, "shr": np.right_shift, "mov": lambda x: x,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
WORDS = {
    "b32": np.uint32,
    "u32": np.uint32,
    "s32": np.int32,
    "b64": np.uint64,
    "u64": np.uint64,
    "s64": np.int64,
}
EXACT = {"approx", "ftz", "full", "rn", "sat", "lo"}  # modifiers that change nothing here but sat


def assembled(
    text: str, constraints: str, arguments: Sequence[Array], results: Sequence[np.dtype[Any]], pack: int
) -> list[Array]:
    """What a piece of inline assembly computes, element by element.

    Args:
        text: of the assembly.
        constraints: as LLVM writes them, "=r,r".
        arguments: arrays of one shape.
        results: NumPy types of the arrays to return.
        pack: elements that one instance of the text takes.

    Raises:
        Foreign: it uses what is not in the tables.
    """
    outputs = sum(part.strip().startswith("=") for part in constraints.split(","))
    inputs = len([part for part in constraints.split(",") if part.strip() and part.strip()[0] not in "=~"])
    shape = np.broadcast_shapes(*(a.shape for a in arguments)) if arguments else (1,)
    loaded = [r for a in arguments for r in _registers(np.ascontiguousarray(np.broadcast_to(a, shape)), pack)]
    if len(loaded) != inputs:
        raise Foreign(f"inline assembly with {len(loaded)} packed registers for {inputs} is not interpreted")
    registers: dict[str, Array] = {f"${outputs + i}": bits for i, bits in enumerate(loaded)}
    for statement in _statements(text):
        _execute(statement, registers)
    made = [registers.get(f"${i}") for i in range(outputs)]
    if any(bits is None for bits in made):
        raise Foreign("inline assembly that leaves a result out is not interpreted")
    return _elements([bits for bits in made if bits is not None], results, shape, pack)


def _registers(data: Array, pack: int) -> list[Array]:
    """The 32- or 64-bit registers in which ``pack`` neighbouring elements travel, each an array of them."""
    flat = data.reshape(-1)
    if flat.dtype == np.bool_:
        raise Foreign("inline assembly on bits is not interpreted")
    size = flat.dtype.itemsize
    if size >= 4:
        words = flat.view(f"uint{8 * size}").reshape(-1, pack)
    elif pack * size >= 4 and pack * size % 4 == 0:
        words = flat.view(np.uint32).reshape(-1, pack * size // 4)
    else:
        words = flat.view(f"uint{8 * size}").astype(np.uint32).reshape(-1, 1)
    return [words[:, i].copy() for i in range(words.shape[1])]


def _elements(
    made: list[Array], results: Sequence[np.dtype[Any]], shape: tuple[int, ...], pack: int
) -> list[Array]:
    """Result registers back as elements."""
    found = []
    for kind in results:
        count = max(1, pack * kind.itemsize // 4) if kind.itemsize < 8 else pack
        words, made = np.stack(made[:count], axis=1), made[count:]
        if kind.itemsize * pack < 4:  # one small element in the low half of a register
            words = words.astype(f"uint{8 * kind.itemsize}")
        else:
            words = words.astype(np.uint64 if kind.itemsize == 8 else np.uint32)
        found.append(np.ascontiguousarray(words).reshape(-1).view(kind).reshape(shape))
    return found


def _statements(text: str) -> list[str]:
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    parts = (" ".join(part.split()) for part in plain.replace("{", ";").replace("}", ";").split(";"))
    return [part for part in parts if part and not part.startswith(".reg")]


def _execute(statement: str, registers: dict[str, Array]) -> None:
    mnemonic, _, rest = statement.partition(" ")
    target, *sources = (word.strip() for word in rest.split(","))
    name, *suffixes = mnemonic.split(".")
    kind = suffixes[-1] if suffixes else ""
    modifiers = set(suffixes[:-1])
    if name == "mov" and kind.startswith("f"):
        kind = kind.replace("f", "b")
    if not modifiers <= EXACT or not sources:
        raise Foreign(f"the instruction {mnemonic} is not interpreted")
    operands = [_operand(source, registers, kind) for source in sources]
    if kind in WORDS and name in BITWISE:
        word = WORDS[kind]
        found = BITWISE[name](*(np.asarray(x).astype(np.dtype(word), casting="unsafe") for x in operands))
        registers[target] = found.astype(word).view(f"uint{8 * np.dtype(word).itemsize}")
    elif name in FLOATING and kind in FORMATS:
        unpack, repack = FORMATS[kind]
        found = FLOATING[name](*(unpack(x) for x in operands))
        registers[target] = repack(np.clip(np.nan_to_num(found), 0, 1) if "sat" in modifiers else found)
    else:
        raise Foreign(f"the instruction {mnemonic} is not interpreted")


def _operand(word: str, registers: dict[str, Array], kind: str) -> Array:
    if word in registers:
        return registers[word]
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", word):
        return np.array([int(word[2:], 16)], dtype=np.uint32)
    try:
        if kind.startswith("f"):
            return np.array([struct.unpack("=I", struct.pack("=f", float(word)))[0]], dtype=np.uint32)
        return np.array([int(word, 0) & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
    except ValueError:
        raise Foreign(f"the register {word} of inline assembly is not interpreted") from None


def _halves(decode: Callable[[Array], Array]) -> Operation:
    return lambda x: np.stack([decode((x >> shift).astype(np.uint16)) for shift in (0, 16)])


def _joined(encode: Callable[[Array], Array]) -> Operation:
    def join(pair: Array) -> Array:
        low, high = (encode(part).astype(np.uint32) for part in pair)
        return np.asarray(low | (high << np.uint32(16)))

    return join


def _half_bits(values: Array) -> Array:
    return values.astype(np.float16).view(np.uint16)


FORMATS: dict[str, tuple[Operation, Operation]] = {
    "f32": (
        lambda x: x.astype(np.uint32).view(np.float32).astype(np.float64),
        lambda y: y.astype(np.float32).view(np.uint32),
    ),
    "f64": (lambda x: x.view(np.float64), lambda y: y.astype(np.float64).view(np.uint64)),
    "f16": (
        lambda x: x.astype(np.uint16).view(np.float16).astype(np.float32),
        lambda y: _half_bits(y).astype(np.uint32),
    ),
    "bf16": (
        lambda x: widened(x.astype(np.uint16)),
        lambda y: narrowed(y.astype(np.float32)).astype(np.uint32),
    ),
    "f16x2": (_halves(lambda h: h.view(np.float16).astype(np.float32)), _joined(_half_bits)),
    "bf16x2": (_halves(widened), _joined(lambda v: narrowed(v.astype(np.float32)))),
}
