"""Children of two kernels: numbers, whole functions, or pragmas of the second in the first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random

from operators.cpp.clauses import Directive, reducing
from operators.cpp.dependence import free_order, independent, reductions
from operators.cpp.nodes import Node, well_formed
from operators.cpp.rewrite import without_idle_knobs
from operators.cpp.structure import Function, Loop, declared_name, squeeze
from operators.cpp.syntax import Edit, Unit, parse, set_pragma
from operators.proposal import Brief, Proposal
from operators.tune import space, with_values
from populations.kernel import Kernel

_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")


class CrossNumbers:
    """The structure of the first parent with tuning constants of the second, each by the toss of a coin."""

    name = "cross_numbers"
    arity = 2

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:  # noqa: ARG002
        """None where no constant of the same name has another value that the first parent allows."""
        first, second = parents[:2]
        ours, theirs = space(first.source, first.language), space(second.source, second.language)
        other = {
            name: theirs[name][0]
            for name, (value, allowed) in sorted(ours.items())
            if name in theirs and theirs[name][0] != value and theirs[name][0] in allowed
        }
        if not other or first.language != second.language:
            return None
        taken = [name for name in other if rng.random() < 0.5] or [rng.choice(list(other))]
        child = with_values(first.source, {name: other[name] for name in taken}, first.language)
        reason = f"numbers that served another kernel: {', '.join(taken)}"
        return Proposal(Kernel(child, first.language), self.name, reason)


class CrossFunctions:
    """The first parent with one function of the second, and with whatever that function needs."""

    name = "cross_functions"
    arity = 2

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:
        """None where the parents share no function by name and type whose text differs."""
        first, second = parents[:2]
        if first.language == "triton":
            from operators.triton.cross import cross_functions  # its parser is loaded only where it is used

            return cross_functions(parents, brief, rng)
        ours, theirs = parse(first.source), parse(second.source)
        if first.language != "cpp" or second.language != "cpp" or not ours.ok or not theirs.ok:
            return None
        pairs = [
            (mine, other)
            for mine in ours.functions
            for other in theirs.functions
            if mine.name == other.name and mine.signature == other.signature
            and squeeze(mine.body.text) != squeeze(other.body.text)
        ]  # fmt: skip
        if not pairs:
            return None
        mine, other = rng.choice(pairs)
        child = _with_function(ours, theirs, mine, other)
        if child is None or child in (first.source, second.source) or not well_formed(child):
            return None
        return Proposal(Kernel(child, "cpp"), self.name, f"{mine.name} as another kernel computes it")


class CrossPragmas:
    """The first parent with the OpenMP directive that the second has on the same loop."""

    name = "cross_pragmas"
    arity = 2

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:  # noqa: ARG002
        """None where no loop of the same depth and bound has another directive that would hold."""
        first, second = parents[:2]
        ours, theirs = parse(first.source), parse(second.source)
        if first.language != "cpp" or second.language != "cpp" or not ours.ok or not theirs.ok:
            return None
        places = _places(theirs)
        choices = [
            edits
            for place, loop in _places(ours).items()
            if place in places and (edits := _directive_edits(ours, theirs, loop, places[place])) is not None
        ]
        if not choices:
            return None
        child = without_idle_knobs(ours.edited(rng.choice(choices)))
        if child in (first.source, second.source) or not well_formed(child):
            return None
        return Proposal(
            Kernel(child, "cpp"), self.name, "a directive that served the same loop of another kernel"
        )


def _with_function(ours: Unit, theirs: Unit, mine: Function, other: Function) -> str | None:
    """Our source with their function for ours; None where both need different things of one name."""
    known, offered = _definitions(ours), _definitions(theirs)
    wanted, brought = [other.name], list[str]()
    while wanted:
        name = wanted.pop()
        for word in re.findall(r"[A-Za-z_]\w*", offered[name]):
            if word == name or word not in offered or word in brought:
                continue
            if word not in known:
                brought.append(word)
                wanted.append(word)
            elif not _serves(ours, theirs, word, known[word], offered[word]):
                return None
    if any(word in ours.names for word in brought):
        return None
    texts = [offered[name] for name in offered if name in brought]
    place = _top(mine.node)
    headers = re.findall(r"#\s*include\s*<([^>]+)>", theirs.source)
    knobs = [text + "\n" for text in texts if "// tune:" in text]
    rest = [text + "\n\n" for text in texts if "// tune:" not in text]
    at = place.start
    edits = [*ours.include(*headers), Edit(at, at, "".join([*knobs, *(["\n"] if knobs else []), *rest]))]
    return without_idle_knobs(ours.edited((*edits, Edit(place.start, place.end, offered[other.name]))))


def _serves(ours: Unit, theirs: Unit, name: str, mine: str, other: str) -> bool:
    """Whether our definition does for theirs: the same text, another number, a function of the same type."""
    if squeeze(mine) == squeeze(other) or ("tune:" in mine and "tune:" in other):
        return True
    types = [next((f.signature for f in unit.functions if f.name == name), None) for unit in (ours, theirs)]
    return types[0] is not None and types[0] == types[1]


def _definitions(unit: Unit) -> dict[str, str]:
    """What the source defines at namespace scope: name -> text, with the comment behind a tuning constant."""
    found: dict[str, str] = {}
    children = unit.root.children
    for i, node in enumerate(children):
        name = _defined(unit, node)
        if name:
            follow = children[i + 1] if i + 1 < len(children) else None
            tail = follow.text.rstrip() if follow and follow.text.startswith("// tune:") else ""
            end = ";" if node.kind in _TYPES else ""
            found[name] = node.text + end + (f"  {tail}" if tail else "")
    return found


def _defined(unit: Unit, node: Node) -> str:
    for function in unit.functions:
        if node.covers(function.node) and node.kind != "namespace_definition":
            return function.name
    if node.kind in _TYPES:
        name = node.child("name")
        return name.text if name else ""
    if node.kind in ("declaration", "type_definition", "alias_declaration"):
        types = [
            child.text for child in node.find("type_identifier") if child.field in ("declarator", "name")
        ]
        return types[-1] if types else declared_name(node)
    return ""


def _top(node: Node) -> Node:
    """The node at namespace scope that holds this one."""
    holders = [node, *node.above()]
    return holders[-2]


def _places(unit: Unit) -> dict[tuple[str, int, str, int], Loop]:
    """Loops by function, depth, bound, and how many such came before."""
    seen: Counter[tuple[str, int, str]] = Counter()
    found = {}
    for loop in unit.loops:
        key = (loop.function.name, loop.depth, squeeze(loop.bound))
        found[*key, seen[key]] = loop
        seen[key] += 1
    return found


def _directive_edits(ours: Unit, theirs: Unit, loop: Loop, other: Loop) -> tuple[Edit, ...] | None:
    """Edits that give our loop their directive; None where it would not hold or changes nothing."""
    directive, mine = Directive.of(other.omp), Directive.of(loop.omp)
    allowed = {"schedule", "simdlen", "proc_bind", "reduction", "if"}
    if any(name not in allowed for name, _ in directive.clauses + mine.clauses) or len(loop.pragmas) > bool(
        loop.omp
    ):
        return None
    found = reductions(ours, loop)
    if found is None or any(reduction.keeps_nan for reduction in found):
        return None
    if "for" in directive.words and (not free_order(ours, loop) or loop.depth != 0):
        return None
    if "simd" in directive.words and not (loop.innermost and independent(ours, loop)):
        return None
    if ("parallel" in directive.words) != ("for" in directive.words) or (
        mine.words and mine.words[0] == "for"
    ):
        return None
    wanted = directive.without("reduction")
    wanted = reducing(wanted, found) if wanted.words else wanted
    if str(wanted) == loop.omp or mine == wanted:
        return None
    numbers, defined = space(theirs.source), _definitions(theirs)
    edits: list[Edit] = []
    for word in re.findall(r"[A-Za-z_]\w*", " ".join(a for name, a in wanted.clauses if name != "reduction")):
        if word in numbers and word not in ours.names:
            at = ours.definition("").start
            edits.append(Edit(at, at, defined[word] + "\n\n"))
        elif word not in ours.names and word not in (
            "static",
            "dynamic",
            "guided",
            "auto",
            "close",
            "spread",
        ):
            return None
    return *edits, set_pragma(loop, str(wanted))
