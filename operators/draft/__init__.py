"""Drafts: a plain first kernel for any problem, written from its reference's graph without a model.

A draft is right and readable rather than fast: one stage for each product, convolution or group of rows, in the
order of the reference. It is what the search starts from where nobody gives a better kernel.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from operators.draft.operations import Program, Undraftable, parsed
from operators.draft.plan import planned
from operators.draft.pointwise import literal
from operators.draft.text import assembled
from operators.draft.values import Array
from populations.graph import Graph
from populations.kernel import Kernel

__all__ = ["Argument", "Undraftable", "draft"]

LARGEST = 256 << 20  # bytes of all temporaries
C_TYPES = {
    "float32": "float", "float64": "double", "bfloat16": "uint16_t", "float16": "uint16_t", "int8": "int8_t",
    "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "bool": "uint8_t",
}  # fmt: skip
RESERVED = set(
    "row i j k l m r first start width height column batch total panel left image channel plane end low high shift "
    "element feature ox oy oz ix iy iz kx ky kz far_x far_y far_z count_x count_y count_z shapes "
    "auto break case char class const continue default delete do double else enum extern float for friend goto if "
    "inline int long namespace new operator private protected public register return short signed sizeof static "
    "struct switch template this throw try typedef union unsigned using virtual void volatile while and or not xor "
    "bool true false exp log sqrt pow tanh erf sin cos tan floor ceil trunc malloc free memcpy y0 y1 yn j0 j1 jn "
    "fmod atan2 nearbyint div abs exp2 expm1 log2 log10 log1p asin acos atan sinh cosh asinh acosh atanh erfc sqrt "
    "index remainder signbit round gamma from_end floor_div ceil_div at_least at_most remainder_of".split()
)


@dataclass(frozen=True)
class Argument:
    """One pointer of the entry: its name and torch's dtype."""

    name: str
    dtype: str


def draft(graph: Graph, outputs: Sequence[Argument], problem: str = "") -> Kernel:
    """A kernel that computes the graph.

    Args:
        graph: the reference; its inputs are the entry's read-only arguments.
        outputs: the entry's outputs, in order.
        problem: what the head comment says it is.

    Raises:
        Undraftable: names the operation that has no draft.
    """
    program = parsed(graph)
    names = _names(program, outputs, [extent.name for extent in graph.extents])
    arrays = {
        name: Array(names[name], node.dtype, node.shape)
        for name, node in program.nodes.items()
        if node.op in ("input", "constant")
    }
    written = [
        Array(names[f"output {n}"], argument.dtype, program.nodes[name].shape)
        for n, (argument, name) in enumerate(zip(outputs, program.outputs, strict=True))
    ]
    plan = planned(program, arrays, written, names)
    size = sum(int(array_bytes(array)) for array in plan.temporaries)
    if size > LARGEST:
        raise Undraftable(f"temporaries of {size >> 20} MiB")
    sizes = [
        f"const int64_t {extent.name} = shapes[{extent.position}];  // {extent.meaning}"
        for extent in graph.extents
        if _mentioned(extent.name, plan.bodies, plan.temporaries)
    ]
    body = [*sizes, *map(_allocated, plan.temporaries)]
    for lines in plan.bodies:
        body += lines
    body += [f"free({array.name});" for array in plan.temporaries]
    constants = [f"constexpr int64_t {name} = {value}" for name, value in sorted(plan.tuned.items())]
    constants += _constants(program, names)
    return Kernel(assembled(_head(problem, graph), constants, _signature(program, names, written), body), "cpp")


def array_bytes(array: Array) -> int:
    """Size in the given case."""
    count = 1
    for extent in array.shape:
        count *= int(extent)
    return count * {"float32": 4, "bool": 1}.get(array.dtype, 8)


def _head(problem: str, graph: Graph) -> list[str]:
    sizes = (
        "Sizes that vary are read from shapes."
        if graph.extents
        else "All sizes are those of the given case: it is not general."
    )
    text = f"{problem} Drafted from the reference's graph, operation by operation. {sizes}".strip()
    return textwrap.wrap(text, 100)


def _signature(program: Program, names: dict[str, str], written: Sequence[Array]) -> str:
    read = [f"const {C_TYPES[program.nodes[name].dtype]}* {names[name]}" for name in program.inputs]
    out = [f"{C_TYPES[array.dtype]}* {array.name}" for array in written]
    lines = ['extern "C" void kernel_function(']
    for argument in [*read, *out, "const int64_t* shapes"]:
        opens = lines[-1].endswith("(")
        if len(lines[-1]) + len(argument) > 104:
            lines.append("    " + argument + ",")
        else:
            lines[-1] += ("" if opens else " ") + argument + ","
    return "\n".join(lines).rstrip(",") + ")"


def _names(program: Program, outputs: Sequence[Argument], taken: Sequence[str]) -> dict[str, str]:
    """C names for all nodes, and for "output 0" and so on; no two alike, none that the loops use."""
    used = RESERVED | set(taken)
    found: dict[str, str] = {}
    wanted = [(name, name) for name in program.inputs]
    wanted += [(f"output {n}", argument.name) for n, argument in enumerate(outputs)]
    wanted += [(name, name) for name in program.nodes if name not in program.inputs]
    for key, name in wanted:
        name = name.lstrip("_") or "value"
        while name in used:
            name += "_"
        used.add(name)
        found[key] = name
    return found


def _constants(program: Program, names: dict[str, str]) -> list[str]:
    lines = []
    for node in program.nodes.values():
        if node.op == "constant":
            type = C_TYPES[node.dtype] if node.dtype not in ("bfloat16", "float16") else "float"
            numbers = ", ".join(literal(number, node.c_type).text for number in node["values"]) or "0"
            lines.append(f"static const {type} {names[node.name]}[] = {{{numbers}}};")
    return lines


def _allocated(array: Array) -> str:
    type = C_TYPES[array.dtype]
    count = " * ".join(extent.atom for extent in array.shape if extent != 1 or extent.factors) or "1"
    return f"{type}* {array.name} = static_cast<{type}*>(malloc(sizeof({type}) * {count}));"


def _mentioned(name: str, bodies: Sequence[Sequence[str]], arrays: Sequence[Array]) -> bool:
    import re

    text = "\n".join(line for lines in bodies for line in lines) + "".join(map(_allocated, arrays))
    return bool(re.search(rf"\b{name}\b", text))
