"""Rewrites of how data moves: fetched before it is needed, and stored past the caches."""

from __future__ import annotations

from collections.abc import Iterator

from operators.cpp.blocks import strip
from operators.cpp.clauses import Directive
from operators.cpp.dependence import follow_together, lane
from operators.cpp.effects import Access, effects
from operators.cpp.loops import loose
from operators.cpp.offsets import roots_in
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import types_in
from operators.cpp.structure import Loop
from operators.cpp.syntax import Edit, Edits, Unit, braced, replace_loop
from operators.proposal import Brief

STREAM = """
// Writes whole cache lines past the caches; `to` is 64-byte aligned, `bytes` a multiple of 64.
static inline void {name}(void* to, const void* from, int64_t bytes) {{
    char* out = static_cast<char*>(to);
    const char* in = static_cast<const char*>(from);
    for (int64_t i = 0; i < bytes; i += 64) {{
#if defined(__AVX512F__)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), _mm512_load_si512(in + i));
#elif defined(__AVX__)
        const __m256i* line = reinterpret_cast<const __m256i*>(in + i);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i), _mm256_load_si256(line));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i + 32), _mm256_load_si256(line + 1));
#else
        __builtin_memcpy(out + i, in + i, 64);
#endif
    }}
}}

// Streaming stores become visible in order only after a fence.
static inline void {name}_done() {{
#if defined(__AVX__)
    _mm_sfence();
#endif
}}
"""


@rewrite(
    "prefetch",
    needs="a loop that walks a buffer element by element",
    reason="lines that the hardware's own prefetcher would fetch late are there in time",
)
def prefetch(unit: Unit, brief: Brief) -> Iterator[Edits]:
    """Asks for the lines of a block ahead before it computes each block."""
    for loop in unit.loops:
        if (
            not loop.innermost
            or not loop.unit_step
            or "collapse" in loop.omp
            or not loose(loop)
            or not loop.straight
        ):
            continue
        if loop.bound.isdigit():
            continue
        found = effects(unit, loop.function, loop.body)
        types = types_in(unit, loop.function)
        inputs = {p.name for p in loop.function.parameters if p.const}
        loads = [a for a in reversed(found.loads) if _walks(a, loop) and a.root in inputs]
        walked = {
            a.base: a
            for a in loads
            if types.get(a.base, "").endswith("*") and not _named_inside(a, found.declared)
        }
        for access in walked.values():
            block = unit.fresh(f"{loop.var}_block")
            size, sized = unit.knob("PREFETCH_BLOCK", 256, (64, 256, 1024))
            ahead, knob = unit.knob("PREFETCH_AHEAD", 512, (128, 256, 512, 1024, 2048))
            line, step = unit.fresh("line"), max(brief.line_bytes // _bytes(types[access.base][:-1]), 1)
            index = access.index.with_names({loop.var: line}) if access.index else ""
            fetch = f"for ({loop.ctype} {line} = {block}; {line} < {block} + {size}; {line} += {step}) "
            fetch += f"__builtin_prefetch({access.base} + {index} + {ahead});\n"
            text = strip(unit, loop, size, loop.inner_text)
            head, tail = text.split("{\n", 1)
            yield sized, knob, replace_loop(loop, f"{head}{{\n{fetch}{tail}")


@rewrite(
    "prefetch_next_row",
    needs="a loop over rows with a pointer to the row, `buffer + row * width`",
    reason="the next row's first lines arrive while this one is computed",
)
def prefetch_next_row(unit: Unit, brief: Brief) -> Iterator[Edits]:
    """Asks for the first lines of the row after this one."""
    for loop in unit.loops:
        if loop.innermost or not loop.unit_step or loop.body.kind != "compound_statement":
            continue
        types, roots = types_in(unit, loop.function), roots_in(unit, loop.function)
        parameters = {p.name for p in loop.function.parameters if p.const}
        for node in loop.statements:
            declarators = [child for child in node.children if child.field == "declarator"]
            if node.kind != "declaration" or len(declarators) != 1 or "__builtin_prefetch" in loop.body.text:
                continue
            name = next(declarators[0].find("identifier")).text
            if not types.get(name, "").endswith("*") or roots.get(name, (None, ""))[0] not in parameters:
                continue
            value = declarators[0].part("value")
            if not value.mentions(loop.var):
                continue
            lines, knob = unit.knob("PREFETCH_LINES", 8, (1, 2, 4, 8, 16, 32))
            line, step = unit.fresh("line"), max(brief.line_bytes // _bytes(types[name][:-1]), 1)
            following = value.with_names({loop.var: f"({loop.var} + 1)"})
            text = f"\n{loop.indent}    for (int {line} = 0; {line} < {lines}; ++{line}) "
            text += f"__builtin_prefetch({following} + {line} * {step});"
            yield knob, Edit(node.end, node.end, text)


@rewrite(
    "stream_stores",
    needs="a loop that only stores, element by element, into an output that it does not read",
    reason="an output larger than the caches need not be read before it is overwritten, nor push inputs out",
)
def stream_stores(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Computes whole lines into a small buffer and writes them past the caches; head and tail as before."""
    for loop in unit.loops:
        found = effects(unit, loop.function, loop.body)
        if not loop.innermost or not loop.unit_step or loop.parallel or not loose(loop) or not found.simple:
            continue
        if found.writes or len(found.stores) != 1 or not follow_together(found, found, loop.var):
            continue
        target = found.stores[0]
        types, outputs = (
            types_in(unit, loop.function),
            {p.name for p in loop.function.parameters if not p.const},
        )
        ctype = types.get(target.base, "")
        assignment = target.node.parent
        plain = assignment is not None and assignment.kind == "assignment_expression"
        if (
            assignment is None
            or not plain
            or assignment.part("operator").text != "="
            or not ctype.endswith("*")
        ):
            continue
        reads_it = any(load.root == target.root for load in found.loads)
        if reads_it or target.root not in outputs or not _walks(target, loop) or _guarded(target, loop):
            continue
        name, stream = unit.knob("STREAM_LINES", 4, (1, 2, 4, 8)), unit.fresh("stream_lines")
        text = _streamed(unit, loop, target, ctype[:-1], name[0], stream)
        yield (
            *unit.include("cstdint", "immintrin.h"), name[1], unit.definition(STREAM.format(name=stream)),
            replace_loop(loop, text),
        )  # fmt: skip


def _streamed(unit: Unit, loop: Loop, target: Access, ctype: str, lines: str, stream: str) -> str:
    at, values, count, head = (unit.fresh(name) for name in ("at", "values", "count", "head"))
    element = {target.node: f"{values}[{loop.var} - {at}]"}
    body = loop.body.replacing(element)
    body = body if body.startswith("{") else braced(body)
    address = f"&{target.node.with_names({loop.var: at})}"
    directive = Directive.of(loop.omp)
    if not directive.has("simdlen"):  # a line is read back as one vector: it has to be written as one
        directive = Directive(("simd",), directive.clauses).plus("simdlen", f"64 / sizeof({ctype})")
    pragma = f"#pragma omp {directive}\n"
    own = loop.body.text if loop.body.text.startswith("{") else braced(loop.body.text)
    return f"""
constexpr int {count} = {lines} * 64 / static_cast<int>(sizeof({ctype}));
{loop.ctype} {at} = {loop.first};
const auto {head} = reinterpret_cast<uintptr_t>({address}) % 64;
if ({head} != 0) {at} += static_cast<{loop.ctype}>((64 - {head}) / sizeof({ctype}));
if ({at} > {loop.bound}) {at} = {loop.bound};
{loop.header(None, at)} {own}
for (; {at} + {count} <= {loop.bound}; {at} += {count}) {{
alignas(64) {ctype} {values}[{count}];
{pragma}{loop.header(at, f"{at} + {count}")} {body}
{stream}({address}, {values}, sizeof {values});
}}
{stream}_done();
{loop.header(at)} {own}"""


def _named_inside(access: Access, declared: frozenset[str]) -> bool:
    """Whether an access needs a name of the loop's body, which does not exist before the loop."""
    return access.base in declared or (
        access.index is not None and any(access.index.mentions(name) for name in declared)
    )


def _walks(access: Access, loop: Loop) -> bool:
    return access.index is not None and (lane(access, loop.var) or "").startswith("unit")


def _guarded(access: Access, loop: Loop) -> bool:
    kinds = ("if_statement", "conditional_expression")
    return any(above.kind in kinds for above in access.node.above() if loop.body.covers(above))


def _bytes(ctype: str) -> int:
    sizes = {"double": 8, "int64_t": 8, "uint16_t": 2, "int16_t": 2, "int8_t": 1, "uint8_t": 1}
    return sizes.get(ctype.strip(), 4)


MEMORY = (prefetch, prefetch_next_row, stream_stores)
