"""Rewrites of how the compiler makes vectors of a loop, and what it may assume."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.clauses import Directive, reducing
from operators.cpp.dependence import independent, reductions
from operators.cpp.effects import effects
from operators.cpp.offsets import roots_in
from operators.cpp.rewrite import rewrite
from operators.cpp.structure import declared_name, pragma_text
from operators.cpp.syntax import Edit, Edits, Unit, set_pragma
from operators.proposal import Brief


@rewrite(
    "simd",
    needs="an innermost loop with independent iterations, but for reductions of +, *, max and min",
    reason="the compiler may compute several iterations at once, and each reduction in lanes",
)
def simd(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``omp simd`` with reduction clauses; a ``parallel for`` becomes ``parallel for simd``."""
    for loop in unit.loops:
        directive = Directive.of(loop.omp)
        if (
            not loop.innermost
            or not loop.unit_step
            or "simd" in directive.words
            or not independent(unit, loop)
        ):
            continue
        found = reductions(unit, loop) or ()
        if not any(r.keeps_nan for r in found) and not any(
            _is_unroll(p) for p in map(pragma_text, loop.pragmas)
        ):
            wider = Directive((*directive.words, "simd"), directive.clauses)
            yield (set_pragma(loop, str(reducing(wider, found))),)


@rewrite(
    "drop_simd",
    needs="a loop with `omp simd`",
    reason="the compiler's own choice of vectors may be better than a forced one",
)
def drop_simd(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Takes ``simd`` and the clauses that only it knows away."""
    for loop in unit.loops:
        directive = Directive.of(loop.omp)
        if "simd" in directive.words:
            words = tuple(word for word in directive.words if word != "simd")
            left = directive.without("simdlen", "safelen", "aligned", "linear").only(*words)
            yield (set_pragma(loop, str(left) if words else ""),)


@rewrite(
    "simd_width",
    needs="a loop with `omp simd`",
    reason="wider vectors do more at once, several of them hide the latency of each",
)
def simd_width(unit: Unit, brief: Brief) -> Iterator[Edits]:
    """Sets ``simdlen`` to a tuning constant."""
    for loop in unit.loops:
        directive = Directive.of(loop.omp)
        named = [argument for name, argument in directive.clauses if name == "simdlen"]
        if "simd" in directive.words and (not named or named[0].isdigit()):
            name, knob = unit.knob("SIMD_WIDTH", max(brief.vector_bytes // 4, 4), (4, 8, 16, 32))
            yield knob, set_pragma(loop, str(directive.without("simdlen").plus("simdlen", name)))


@rewrite(
    "unroll",
    needs="an innermost loop without `omp` or `unroll` pragma",
    reason="fewer branches, and more independent instructions in flight",
)
def unroll(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``#pragma GCC unroll`` with a tuning constant."""
    for loop in unit.loops:
        if loop.innermost and not loop.pragmas:
            name, knob = unit.knob("UNROLL", 4, (1, 2, 4, 8))
            yield knob, Edit(loop.start, loop.start, f"{loop.indent}#pragma GCC unroll {name}\n")


@rewrite(
    "restrict",
    needs="pointers without `__restrict`: the entry's, or its only pointers into a buffer",
    reason="what cannot overlap needs no check at run time and no reload",
)
def restrict(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``__restrict`` to all parameters of the entry, or to its row pointers."""
    assert unit.entry is not None
    bare = [p for p in unit.entry.parameters if p.pointer and not p.restrict]
    edits = [_promise(next(p.node.find("pointer_declarator")).start) for p in bare]
    if edits:
        yield tuple(edits)
    roots = roots_in(unit, unit.entry)
    shared = [root for root, _ in roots.values()]
    local: list[Edit] = []
    for node in unit.entry.body.find("pointer_declarator"):
        root = roots.get(declared_name(node), (None, ""))[0]
        lone = root is not None and shared.count(root) <= 2 and _only_sources(unit, root)
        if lone and "restrict" not in node.text:
            local.append(_promise(node.start))
    if local:
        yield tuple(local)


@rewrite(
    "aligned",
    needs="a parameter of the entry that the kernel does not yet promise to be 64-byte aligned",
    reason="aligned vectors need no peeled loop and never cross a cache line",
)
def aligned(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Promises at the entry, or in a ``simd`` loop, that buffers start at a cache line."""
    assert unit.entry is not None
    pointers = [p for p in unit.entry.parameters if p.pointer and p.ctype != "int64_t"]
    if "__builtin_assume_aligned" not in unit.source and pointers:
        lines = [
            f"    {p.name} = ({'const ' * p.const}{p.ctype}*)__builtin_assume_aligned({p.name}, 64);\n"
            for p in pointers
        ]
        at = unit.entry.body.start + 1
        yield (Edit(at, at, "\n" + "".join(lines).rstrip("\n")),)
    for loop in unit.loops:
        directive = Directive.of(loop.omp)
        if "simd" in directive.words and not directive.has("aligned") and loop.function.entry:
            found = effects(unit, loop.function, loop.body)
            used = {access.base for access in found.loads + found.stores} & {p.name for p in pointers}
            if used:
                yield (set_pragma(loop, str(directive.plus("aligned", f"{', '.join(sorted(used))} : 64"))),)


@rewrite(
    "inline_functions",
    needs="a function beside the entry that is not always inlined",
    reason="a call in a loop keeps it from becoming vectors",
)
def inline_functions(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``always_inline``."""
    for function in unit.functions:
        words = unit.data[function.node.start : function.body.start].decode()
        asked, own = "always_inline" in words, "static" in words and "template" not in words
        recursive = re.search(rf"\b{function.name}\s*\(", function.body.text)
        if own and not function.entry and not asked and not recursive:
            inline = "" if re.search(r"\binline\b", words) else "inline "
            yield (
                Edit(function.node.start, function.node.start, f"__attribute__((always_inline)) {inline}"),
            )


def _promise(at: int) -> Edit:
    return Edit(at + 1, at + 1, " __restrict")


def _only_sources(unit: Unit, root: str) -> bool:
    """Whether a buffer is only used to make row pointers, never indexed itself."""
    assert unit.entry is not None
    found = effects(unit, unit.entry, unit.entry.body)
    return not any(access.base == root for access in found.loads + found.stores)


def _is_unroll(text: str) -> bool:
    return text.startswith("GCC unroll")


VECTOR = (simd, drop_simd, simd_width, unroll, restrict, aligned, inline_functions)
