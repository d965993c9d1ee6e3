"""Children of two Triton kernels: the structure of the first with something of the second.

An idea is a function from two parsed sources to whole children, which yields nothing where the two have
nothing to give each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from operators.proposal import Brief, Proposal
from operators.triton.flow import argument_of, calls
from operators.triton.knobs import constexprs, options
from operators.triton.launch import OPTIONS
from operators.triton.loops import with_keyword
from operators.triton.memory import HINTS, base, hinted
from operators.triton.structure import Jit, Loop, Unit, unit_of
from operators.triton.syntax import Edit, Edits, renamed, squeeze, well_formed
from operators.tune import space, with_values
from populations.kernel import Kernel

Idea = Callable[[Unit, Unit], Iterator[str]]


@dataclass(frozen=True)
class Crossing:
    """An operator of arity 2 for Triton; see ``operators.triton.rewrite.Rewrite`` for the words."""

    name: str
    needs: str
    reason: str
    idea: Idea
    arity: int = 2

    def __call__(self, parents: Sequence[Kernel], brief: Brief, rng: Random) -> Proposal | None:  # noqa: ARG002
        """One of the children; None where there is none that differs from both parents."""
        if any(parent.language != "triton" for parent in parents):
            return None
        first, second = (parent.source for parent in parents[:2])
        choices = [child for child in self.children(first, second) if child not in (first, second)]
        child = rng.choice(choices) if choices else ""
        if not child or not well_formed(child):
            return None
        return Proposal(Kernel(child, "triton"), self.name, self.reason)

    def children(self, first: str, second: str) -> Iterator[str]:
        """Every child it can make of these two."""
        try:
            ours, theirs = unit_of(first), unit_of(second)
        except (cst.ParserSyntaxError, UnicodeError):
            return
        if ours.launches and theirs.launches:
            yield from self.idea(ours, theirs)


def crossing(name: str, *, needs: str, reason: str) -> Callable[[Idea], Crossing]:
    """Make a crossover of an idea."""
    return lambda idea: Crossing(name, needs, reason, idea)


@crossing(
    "cross_launch",
    needs="parents of which the second has other numbers of one name, or launch options that the first lacks",
    reason="a body with the whole launch configuration that served another one",
)
def cross_launch(ours: Unit, theirs: Unit) -> Iterator[str]:
    """All numbers of equal names that the first allows, and the missing options of the launch."""
    mine, other = (space(unit.tree.source, "triton") for unit in (ours, theirs))
    values = {
        name: other[name][0]
        for name, (value, allowed) in mine.items()
        if name in other and other[name][0] != value and other[name][0] in allowed
    }
    wanted = {
        name: other[name]
        for name in OPTIONS
        if name in other
        and name not in ours.config
        and not any(name in launch.options or not launch.clear for launch in ours.launches)
    }
    child = with_values(ours.tree.source, values, "triton") if values else ours.tree.source
    unit = unit_of(child)
    yield unit.tree.edited(options(unit, unit.launches, wanted)) if wanted else child


@crossing(
    "cross_functions",
    needs="parents with a jit function of one name and the same parameters, but another text",
    reason="a function as another kernel computes it, with what it needs",
)
def cross_functions(ours: Unit, theirs: Unit) -> Iterator[str]:
    """One function at a time."""
    for mine in ours.jits:
        for other in theirs.jits:
            if mine.name == other.name and _fits(mine, other):
                yield from _with_functions(ours, theirs, [(mine, other)])


@crossing(
    "cross_halves",
    needs="parents whose kernels, whatever their names, take the same parameters",
    reason="the host of one kernel launches the device code of another",
)
def cross_halves(ours: Unit, theirs: Unit) -> Iterator[str]:
    """Every kernel that the host launches is the second parent's."""
    launched = {launch.kernel.name for launch in ours.launches}
    pairs = []
    for mine in ours.kernels:
        fitting = [other for other in theirs.kernels if _fits(mine, other)]
        named = [other for other in fitting if other.name == mine.name]
        if len(named or fitting) != 1:
            return
        pairs.append((mine, (named or fitting)[0]))
    one_of_same_name = len(pairs) == 1 and pairs[0][0].name == pairs[0][1].name  # cross_functions has that
    if pairs and len(pairs) == len(launched) and not one_of_same_name:
        yield from _with_functions(ours, theirs, pairs)


def _fits(mine: Jit, other: Jit) -> bool:
    signatures = [[(p.name, p.constexpr) for p in jit.parameters] for jit in (mine, other)]
    return signatures[0] == signatures[1]


def _with_functions(ours: Unit, theirs: Unit, pairs: Sequence[tuple[Jit, Jit]]) -> Iterator[str]:
    """Our source with their functions in the place of ours; nothing where a name means two things."""
    if all(_text(ours, mine) == _text(theirs, other) for mine, other in pairs):
        return
    known, offered = _definitions(ours), _definitions(theirs)
    replaced = {mine.name for mine, _ in pairs}
    todo = [other.name for _, other in pairs]
    brought: list[str] = []
    taken = {other.name for _, other in pairs}
    while todo:
        for word in re.findall(r"[A-Za-z_]\w*", offered[todo.pop()]):
            if word not in offered or word in brought or word in taken:
                continue
            if word in replaced or (word in known and not _serves(ours, theirs, word)):
                return
            if word not in known:
                brought.append(word)
                todo.append(word)
    if any(word in ours.tree.names for word in brought):
        return
    edits = []
    for mine, other in pairs:
        text = _text(theirs, other)
        text = renamed(text, {other.name: mine.name}) if other.name != mine.name else text
        edits.append(Edit(*_whole(ours, mine.node), text))
    texts = [offered[name] for name in offered if name in brought]
    texts.sort(key=lambda text: "def " in text)  # constants first
    first = min(_whole(ours, mine.node)[0] for mine, _ in pairs)
    missing = [line for line in _imports(theirs) if line not in _imports(ours)]
    if texts:
        edits.append(Edit(first, first, "".join(text + "\n\n" for text in texts)))
    if missing:
        edits.append(Edit(_imports_end(ours), _imports_end(ours), "".join(f"{line}\n" for line in missing)))
    yield ours.tree.edited(edits)


def _serves(ours: Unit, theirs: Unit, name: str) -> bool:
    """Whether our definition does for theirs: the same text, or a function of the same parameters."""
    texts = [squeeze(_definitions(unit)[name]) for unit in (ours, theirs)]
    jits = [next((jit for jit in unit.jits if jit.name == name), None) for unit in (ours, theirs)]
    return texts[0] == texts[1] or (jits[0] is not None and jits[1] is not None and _fits(jits[0], jits[1]))


def _text(unit: Unit, jit: Jit) -> str:
    start, end = _whole(unit, jit.node)
    return unit.tree.data[start:end].decode()


def _whole(unit: Unit, node: cst.CSTNode) -> tuple[int, int]:
    """The lines of a definition, with its decorators and the comments above."""
    first = node.decorators[0] if isinstance(node, cst.FunctionDef) and node.decorators else node
    return unit.tree.lines(first)[0], unit.tree.lines(node)[1]


def _definitions(unit: Unit) -> dict[str, str]:
    """Jit functions and constants of the module: name -> text; the launches' numbers are not among them."""
    found = {jit.name: _text(unit, jit) for jit in unit.jits}
    for line in unit.tree.module.body:
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            small = line.body[0]
            if isinstance(small, cst.Assign) and isinstance(small.targets[0].target, cst.Name):
                name = small.targets[0].target.value
                if name not in ("CONFIG", "SPACE"):
                    found[name] = unit.tree.block([line])
    return found


def _imports(unit: Unit) -> list[str]:
    return [unit.tree.text(line) for line in unit.tree.module.body if _is_import(line)]


def _imports_end(unit: Unit) -> int:
    lines = [line for line in unit.tree.module.body if _is_import(line)]
    return unit.tree.lines(lines[-1])[1] if lines else 0


def _is_import(line: cst.CSTNode) -> bool:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Import | cst.ImportFrom)


@crossing(
    "cross_loops",
    needs="parents with a loop of one depth that loads the same arguments, but other keywords in its range",
    reason="pipelining and unrolling that served the same loop of another kernel",
)
def cross_loops(ours: Unit, theirs: Unit) -> Iterator[str]:
    """One loop at a time gets all the keywords that it lacks; numbers of SPACE come along."""
    places = {_place(theirs, loop): loop for loop in reversed(theirs.loops)}
    for loop in ours.loops:
        other = places.get(_place(ours, loop))
        if other is None or "tl.static_range" in (loop.kind, other.kind):
            continue
        missing = [arg for name, arg in other.keywords.items() if name not in loop.keywords]
        texts = {arg.keyword.value: theirs.tree.text(arg.value) for arg in missing if arg.keyword}
        numbers = space(theirs.tree.source, "triton") if loop.jit in ours.kernels else {}
        knobs = {v: numbers[v] for v in texts.values() if v in numbers and v not in ours.tree.names}
        edits = list(constexprs(ours, loop.jit, knobs) or ()) if knobs else []
        known = knobs if edits else {}
        for keyword, value in texts.items():
            if value in known or re.fullmatch(r"\d+|True|False", value):
                edits += with_keyword(ours, loop, keyword, value)
        unique = [edit for i, edit in enumerate(edits) if edit.text != "tl.range" or edit not in edits[:i]]
        if unique:
            yield ours.tree.edited(unique)


def _place(unit: Unit, loop: Loop) -> tuple[int, tuple[str, ...]]:
    return loop.depth, tuple(sorted({base(unit, loop.jit, c) for c in calls(unit, loop.node, "load")}))


@crossing(
    "cross_policies",
    needs="parents that load or store an argument of one name under different cache policies",
    reason="cache policies that served the same argument of another kernel",
)
def cross_policies(ours: Unit, theirs: Unit) -> Iterator[str]:
    """One argument at a time, then all of them; the last policy stands for any further accesses."""
    found: list[tuple[Edit, ...]] = []
    for kind in ("load", "store"):
        mine, other = _accesses(ours, kind), _accesses(theirs, kind)
        for argument in mine.keys() & other.keys():
            edits: list[Edit] = []
            for i, call in enumerate(mine[argument]):
                model = other[argument][min(i, len(other[argument]) - 1)]
                edits += _copied(ours, call, model)
            if edits:
                found.append(tuple(edits))
    found.sort(key=lambda edits: edits[0].start)
    yield from (ours.tree.edited(edits) for edits in found)
    if len(found) > 1:
        yield ours.tree.edited(edit for edits in found for edit in edits)


def _accesses(unit: Unit, kind: str) -> dict[str, list[cst.Call]]:
    found: dict[str, list[cst.Call]] = {}
    for jit in unit.kernels:
        for call in calls(unit, jit.node, kind):
            found.setdefault(base(unit, jit, call), []).append(call)
    return found


def _copied(ours: Unit, call: cst.Call, model: cst.Call) -> Edits:
    """Edits that give our access the hint to the caches that theirs has."""
    for name in HINTS:
        given = argument_of(model, name)
        if given is not None and isinstance(given.value, cst.SimpleString):
            return hinted(ours, call, name, str(given.value.evaluated_value))
    return ()


CROSSINGS = (cross_launch, cross_halves, cross_loops, cross_policies)
