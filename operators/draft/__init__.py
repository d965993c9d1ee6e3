"""Drafts: a plain first kernel for any problem, written from its reference's graph without a model.

A draft is right and readable rather than fast: one stage for each product, convolution or group of rows, in
the order of the reference. It is what the search starts from where nobody gives a better kernel.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from operators.draft.expressions import literal
from operators.draft.names import c_names
from operators.draft.operations import Program, Undraftable
from operators.draft.plan import planned
from operators.draft.reading import parsed
from operators.draft.text import assembled
from operators.draft.values import Array
from populations.dtypes import C_TYPES, HALVES
from populations.graph import Graph
from populations.kernel import Kernel

__all__ = ["Argument", "Undraftable", "draft"]

LARGEST = 256 << 20  # bytes of all temporaries


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
    names = c_names(program, [one.name for one in outputs], [extent.name for extent in graph.extents])
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
    return Kernel(
        assembled(_head(problem, graph), constants, _signature(program, names, written), body), "cpp"
    )


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


def _constants(program: Program, names: dict[str, str]) -> list[str]:
    lines = []
    for node in program.nodes.values():
        if node.op == "constant":
            type = C_TYPES[node.dtype] if node.dtype not in HALVES else "float"
            numbers = ", ".join(literal(number, node.c_type).text for number in node["values"]) or "0"
            lines.append(f"static const {type} {names[node.name]}[] = {{{numbers}}};")
    return lines


def _allocated(array: Array) -> str:
    type = C_TYPES[array.dtype]
    count = " * ".join(extent.atom for extent in array.shape if extent != 1 or extent.factors) or "1"
    return f"{type}* {array.name} = static_cast<{type}*>(malloc(sizeof({type}) * {count}));"


def _mentioned(name: str, bodies: Sequence[Sequence[str]], arrays: Sequence[Array]) -> bool:
    text = "\n".join(line for lines in bodies for line in lines) + "".join(map(_allocated, arrays))
    return bool(re.search(rf"\b{name}\b", text))
