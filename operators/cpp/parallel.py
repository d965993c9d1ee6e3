"""Rewrites of how OpenMP spreads loops over threads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operators.cpp.clauses import Directive, reducing
from operators.cpp.dependence import independent, reductions
from operators.cpp.effects import effects
from operators.cpp.rewrite import rewrite
from operators.cpp.structure import Loop, pragma_text, pragmas_before
from operators.cpp.syntax import Edit, Edits, Unit, block_siblings, braced, reindent, replace_loop, set_pragma
from operators.proposal import Brief


@rewrite(
    "parallelise",
    needs="an outermost loop without a pragma, whose iterations touch disjoint elements (reductions allowed)",
    reason="independent iterations can use all cores",
)
def parallelise(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``omp parallel for``."""
    for loop in unit.loops:
        if loop.parent is None and loop.function.entry and not loop.pragmas and independent(unit, loop):
            found = reductions(unit, loop) or ()
            if not any(reduction.keeps_nan for reduction in found) and not _inside_region(loop):
                yield (set_pragma(loop, str(reducing(Directive(("parallel", "for")), found))),)


@rewrite(
    "schedule",
    needs="a loop that OpenMP spreads over threads",
    reason="another schedule or chunk balances the threads or keeps each on its own lines",
)
def schedule(unit: Unit, _brief: Brief) -> Iterator[Edits]:
    """Sets the schedule clause, the chunk as a tuning constant."""
    for loop in unit.loops:
        if not loop.parallel:
            continue
        directive = Directive.of(loop.omp)
        bare = directive.without("schedule")
        now, _, chunk = next((a for name, a in directive.clauses if name == "schedule"), "").partition(",")
        if chunk or now != "static":
            yield (set_pragma(loop, str(bare.plus("schedule", "static"))),)
        for kind in ("static", "dynamic", "guided"):
            name, knob = unit.knob("CHUNK", 4, (1, 2, 4, 8, 16, 32))
            if chunk and kind != now:
                yield (set_pragma(loop, str(bare.plus("schedule", f"{kind}, {chunk.strip()}"))),)
            elif not chunk:
                yield knob, set_pragma(loop, str(bare.plus("schedule", f"{kind}, {name}")))


@rewrite(
    "collapse",
    needs="a parallel loop around just one other loop with fixed limits and independent iterations",
    reason="two loops spread as one give every thread an equal share, however few the outer iterations",
)
def collapse(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``collapse(2)``; declarations between the loops move into the inner one."""
    for outer in unit.loops:
        if not outer.parallel or Directive.of(outer.omp).has("collapse") or "simd" in outer.omp.split():
            continue
        *before, last = [s for s in outer.statements if s.kind != "preproc_call"] or [outer.body]
        inner = unit.loop_at(last)
        if inner is None or inner.pragmas or any(s.kind != "declaration" for s in before):
            continue
        moved = effects(unit, outer.function, *before)
        limits = f"{inner.first} {inner.bound} {inner.step}"
        if any(re.search(rf"\b{name}\b", limits) for name in moved.declared | {outer.var}):
            continue
        if not moved.simple or moved.writes or moved.stores or not independent(unit, inner, reducing=False):
            continue
        lines = "\n".join(statement.text for statement in before)
        pragma = f"#pragma omp {Directive.of(outer.omp).plus('collapse', '2')}"
        body = braced(f"{lines}\n{inner.inner_text}")
        text = f"{pragma}\n{outer.header()} {{\n{inner.header()} {body}\n}}"
        yield (replace_loop(outer, text),)


@rewrite(
    "serial_below",
    needs="a `parallel for` without an `if` clause",
    reason="waking the threads costs more than a small loop takes",
)
def serial_below(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``if(work >= cutoff)``."""
    for loop in unit.loops:
        directive = Directive.of(loop.omp)
        if directive.words[:2] != ("parallel", "for") or directive.has("if"):
            continue
        local = effects(unit, loop.function, loop.body).declared | {loop.var}
        nested = [
            i for i in unit.children_of(loop) if not any(re.search(rf"\b{n}\b", i.bound) for n in local)
        ]
        work = f"({loop.bound})" + "".join(f" * ({inner.bound})" for inner in nested[:1])
        name, knob = unit.knob("SERIAL_BELOW", 16384, (4096, 16384, 65536, 262144), "int64_t")
        yield knob, set_pragma(loop, str(directive.plus("if", f"{_bare(work)} >= {name}")))


@rewrite(
    "one_region",
    needs="two parallel loops, one right after the other, that reduce nothing",
    reason="the threads are woken once instead of twice",
)
def one_region(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Puts one ``omp parallel`` around both; the barrier between them stays."""
    for first in unit.loops:
        siblings = block_siblings(first.node)
        at = siblings.index(first.node)
        second = unit.loop_at(siblings[at + 1]) if at + 1 < len(siblings) else None
        if second is None or not all(_joinable(loop) for loop in (first, second)):
            continue
        texts = [
            f"#pragma omp {Directive.of(loop.omp).only(*Directive.of(loop.omp).words[1:])}\n{loop.node.text}"
            for loop in (first, second)
        ]
        between = unit.data[first.end : second.start].decode().strip()
        body = "\n".join(filter(None, (texts[0], between, texts[1])))
        text = reindent(f"#pragma omp parallel\n{braced(body)}", first.indent)
        yield (Edit(first.start, second.end, text),)


@rewrite(
    "region_outside",
    needs="a serial loop whose body is one parallel loop that reduces nothing",
    reason="the threads are woken once instead of once an iteration",
)
def region_outside(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Every thread walks the serial loop and shares the inner one."""
    for outer in unit.loops:
        inner = [loop for loop in unit.children_of(outer) if loop.node in outer.statements]
        around = [s for s in outer.statements if s.kind not in ("preproc_call", "declaration")]
        if outer.pragmas or len(inner) != 1 or around != [inner[0].node] or not _joinable(inner[0]):
            continue
        words = Directive.of(inner[0].omp)
        head = unit.data[outer.start : inner[0].start].decode()
        body = f"{head}#pragma omp {words.only(*words.words[1:])}\n"
        tail = unit.data[inner[0].node.start : outer.end].decode()
        text = reindent(f"#pragma omp parallel\n{braced(body + tail)}", outer.indent)
        yield (Edit(outer.start, outer.end, text),)


@rewrite(
    "bind_threads",
    needs="a `parallel for` without a `proc_bind` clause",
    reason="threads that stay near each other, or far apart, use the caches differently",
)
def bind_threads(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Adds ``proc_bind``."""
    for loop in unit.loops:
        directive = Directive.of(loop.omp)
        if directive.words[:2] == ("parallel", "for") and not directive.has("proc_bind"):
            for where in ("close", "spread"):
                yield (set_pragma(loop, str(directive.plus("proc_bind", where))),)


def _inside_region(loop: Loop) -> bool:
    return any(
        pragma_text(p).startswith("omp parallel") for node in loop.node.above() for p in pragmas_before(node)
    )


def _joinable(loop: Loop) -> bool:
    directive = Directive.of(loop.omp)
    clauses = {name for name, _ in directive.clauses}
    return directive.words[:2] == ("parallel", "for") and clauses <= {"schedule", "collapse", "simdlen"}


def _bare(product: str) -> str:
    """Without the parentheses around plain names."""
    return re.sub(r"\((\w+)\)", r"\1", product)


PARALLEL = (parallelise, schedule, collapse, serial_below, one_region, region_outside, bind_threads)
