"""Running sums: a chain of additions becomes sums of whole vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.dependence import Reduction, lane, reduction_of
from operators.cpp.effects import effects
from operators.cpp.loops import loose
from operators.cpp.nodes import Node
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import type_of, types_in
from operators.cpp.structure import Loop
from operators.cpp.syntax import Edit, Edits, Unit, reindent
from operators.proposal import Brief

SCAN = """
typedef {ctype} {vector} __attribute__((vector_size({bytes})));
typedef {index} {shift} __attribute__((vector_size({bytes})));

// Running sums of the {lanes} values at `in`, added to `before`, go to `out`; returns the last of them.
// The next block waits for one addition only.
static inline {ctype} {name}(const {ctype}* in, {element}* out, {ctype} before) {{
    {vector} v;
    const {vector} zero = {{}};
    __builtin_memcpy(&v, in, sizeof v);
{steps}
    const {vector} sums = v + before;
    {store}
    return before + v[{last}];
}}
"""


@rewrite(
    "prefix_scan",
    needs="a loop that adds to one accumulator and stores it after each addition",
    reason="a few shifted additions of a whole vector instead of a chain of one addition a value",
)
def prefix_scan(unit: Unit, brief: Brief) -> Iterator[Edits]:
    """Computes the values of a block, then its running sums in a vector register."""
    for loop in unit.loops:
        found = _running_sum(unit, loop)
        if found is None:
            continue
        total, stored, ctype, element = found
        lanes = brief.vector_bytes // (4 if ctype == "float" else 8)
        names = {
            key: unit.fresh(key) for key in ("ScanVector", "ScanShift", "scan_block", "values", "at", "part")
        }
        steps = []
        for width in (1 << i for i in range(lanes.bit_length() - 1)):
            order = ", ".join(str(lanes if i < width else i - width) for i in range(lanes))
            steps.append(f"    v += __builtin_shuffle(v, zero, {names['ScanShift']}{{{order}}});")
        store = "__builtin_memcpy(out, &sums, sizeof sums);"
        if element != ctype:
            store = f"for (int i = 0; i < {lanes}; ++i) out[i] = sums[i];"
        helper = SCAN.format(
            store=store,
            ctype=ctype, element=element, bytes=brief.vector_bytes, lanes=lanes, last=lanes - 1,
            index="int32_t" if ctype == "float" else "int64_t", vector=names["ScanVector"],
            shift=names["ScanShift"], name=names["scan_block"], steps="\n".join(steps),
        )  # fmt: skip
        size, knob = unit.knob("SCAN_BLOCK", 256, (64, 128, 256, 512, 1024))
        text = _scanned(loop, total, stored, ctype, lanes, names, size)
        yield (
            *unit.include("cstdint"),
            knob,
            unit.definition(helper),
            Edit(loop.start, loop.end, reindent(text, loop.indent)),
        )


def _scanned(
    loop: Loop, total: Reduction, stored: Node, ctype: str, lanes: int, names: dict[str, str], size: str
) -> str:
    at, values, part = names["at"], names["values"], names["part"]
    kept = [node for node in loop.statements if node is not total.node and not node.covers(stored)]
    before = "".join(node.text + "\n" for node in kept if node.kind != "preproc_call")
    negative = re.search(rf"^{total.name}\s*-=", total.node.text)
    value = f"-({total.value.text})" if negative else total.value.text
    each = f"for ({loop.ctype} {loop.var} = {at}; {loop.var} < {at} + {size}; ++{loop.var})"
    target = stored.with_names({loop.var: f"({at} + {part})"})
    return f"""
{loop.ctype} {at} = {loop.first};
for (; {at} + {size} <= {loop.bound}; {at} += {size}) {{
alignas(64) {ctype} {values}[{size}];
{each} {{
{before}{values}[{loop.var} - {at}] = {value};
}}
for ({loop.ctype} {part} = 0; {part} < {size}; {part} += {lanes}) {{
{total.name} = {names["scan_block"]}({values} + {part}, &{target}, {total.name});
}}
}}
{loop.header(at)} {loop.body.text}"""


def _running_sum(unit: Unit, loop: Loop) -> tuple[Reduction, Node, str, str] | None:
    """The addition, the stored element, and the types of both, of a loop that is a running sum."""
    if loop.pragmas or not loop.innermost or not loop.unit_step or loop.body.kind != "compound_statement":
        return None
    body = effects(unit, loop.function, loop.body)
    sums = [r for r in map(reduction_of, loop.statements) if r is not None and r.op == "+"]
    if (
        len(sums) != 1
        or body.writes != {sums[0].name}
        or len(body.stores) != 1
        or not body.simple
        or not loose(loop)
    ):
        return None
    stored, total = body.stores[0], sums[0]
    last = loop.statements[-1]
    assignment = stored.node.parent
    after = last.covers(stored.node) and last.kind == "expression_statement" and last.start > total.node.start
    if not after or assignment is None or assignment.kind != "assignment_expression":
        return None
    if assignment.part("operator").text != "=" or assignment.part("right").text != total.name:
        return None
    others = [
        n for s in loop.statements if s is not total.node and s is not last for n in s.find("identifier")
    ]
    types = types_in(unit, loop.function)
    ctype, element = types.get(total.name), type_of(stored.node, types, unit)
    if any(n.text == total.name for n in others) or ctype not in ("float", "double"):
        return None
    unit_lane = (lane(stored, loop.var) or "").startswith("unit")
    if (
        not unit_lane
        or any(load.root == stored.root for load in body.loads)
        or element not in ("float", "double")
    ):
        return None
    return total, stored.node, ctype, element


SCANS = (prefix_scan,)
