"""Which stages a kernel has, and in what order.

Reductions, products, windows and scans are computed; all else is evaluated where it is read. A reduction
joins the stage before it where both go over the same rows; outputs are written by the stage that knows them.
What a stage needs of another one is kept in memory: found out by trying, and trying again with more kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from operators.draft import gathering
from operators.draft.convolutions import Convolution
from operators.draft.loops import Write
from operators.draft.operations import Operation, Program, Undraftable, computed_in
from operators.draft.pointwise import is_pointwise
from operators.draft.pooling import POOLS, Pool
from operators.draft.products import Product
from operators.draft.rows import REDUCTIONS, Rows, Space, reduced
from operators.draft.scans import SCANS, Scan
from operators.draft.splitting import PIECES
from operators.draft.values import Array, Mismatch, Values
from operators.draft.views import VIEWS

PRODUCTS = ("aten.mm", "aten.bmm")
KNOWN = (*PRODUCTS, "aten.convolution", *POOLS, *SCANS, *REDUCTIONS)
FREE = ("input", "constant", "tuple", "getitem", "aten.unbind", *PIECES)  # what only others read
MOST_TRIES = 200

AnyStage = Rows | Product | Convolution | Pool | Scan


@dataclass
class Plan:
    """A finished plan.

    Attributes:
        bodies: lines of each stage.
        temporaries: arrays to allocate.
        tuned: constants that tune.
    """

    bodies: list[list[str]] = field(default_factory=list)
    temporaries: list[Array] = field(default_factory=list)
    tuned: dict[str, str] = field(default_factory=dict)


def planned(program: Program, arrays: dict[str, Array], outputs: list[Array], names: dict[str, str]) -> Plan:
    """The plan of a program.

    Args:
        program: what to compute.
        arrays: what is in memory from the start, by node.
        outputs: the arrays to fill, in the order of the program's outputs.
        names: C names of nodes.

    Raises:
        Undraftable: it holds an operation that has no draft.
    """
    for node in program.nodes.values():
        _check(node)
    kept: set[str] = set()
    for _ in range(MOST_TRIES):
        try:
            return _Planner(program, arrays, outputs, names, kept).plan()
        except _Needed as needed:
            if needed.name in kept:
                raise Undraftable(program.nodes[needed.name].op) from None
            kept.add(needed.name)
    raise Undraftable("so many stages")


class _Needed(Exception):
    """A computed node must be kept in memory."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _check(node: Operation) -> None:
    op = node.op
    if node.dtype not in ("tuple",) and node.dtype.startswith("complex"):
        raise Undraftable(f"{op} of complex numbers")
    known = op in KNOWN or op in FREE or op in VIEWS or op in gathering.RULES or is_pointwise(op)
    if not known or (op == "getitem" and node["index"] != 0):
        raise Undraftable(op)


class _Planner:
    def __init__(
        self,
        program: Program,
        arrays: dict[str, Array],
        outputs: list[Array],
        names: dict[str, str],
        kept: set[str],
    ) -> None:
        self.program, self.start, self.outputs, self.names, self.kept = program, arrays, outputs, names, kept
        self.computed = {name for name, node in program.nodes.items() if node.op in KNOWN}
        self.stages: list[AnyStage] = []
        self.tuned: dict[str, str] = {}

    def plan(self) -> Plan:
        for node in self.program.nodes.values():
            if node.name in self.computed:
                self._compute(node)
        for name, array in zip(self.program.outputs, self.outputs, strict=True):
            self._write(Write(name, array))
        bodies = [self._render(stage, n) for n, stage in enumerate(self.stages)]
        temporaries = [self._array(name) for name in self.program.nodes if name in self._temporary()]
        return Plan(bodies, temporaries, self.tuned)

    # -- stages ----------------------------------------------------------------------------------------

    def _compute(self, node: Operation) -> None:
        if node.op in REDUCTIONS:
            source = self.program.nodes[node["self"]]
            last = self.stages[-1] if self.stages else None
            if (
                isinstance(last, Rows)
                and not last.plain
                and self._replaced(last, last.and_computes(node.name))
            ):
                return
            dims = reduced(node, len(source.shape))
            kept = tuple(n for n in range(len(source.shape)) if n not in dims)
            self._added(Rows(Space(source.shape, kept)).and_computes(node.name))
            return
        if node.op in SCANS:
            self._added(Scan(node))
            return
        for name in node.refs()[: 1 if node.op in POOLS else 2]:
            self._in_memory(name)
        kind = Product if node.op in PRODUCTS else Pool if node.op in POOLS else Convolution
        self._added(kind(node))

    def _in_memory(self, name: str) -> None:
        """Have an operand that is read many times written to memory, unless it is there already."""
        node = self.program.nodes[name]
        while node.name not in self._arrays(len(self.stages)) and node.op in VIEWS:
            node = self.program.nodes[node.refs()[0]]
        if node.name in self._arrays(len(self.stages)) or node.name in self.computed:
            return
        self._write(Write(node.name, self._array(node.name)))

    def _write(self, write: Write) -> None:
        """Let the latest stage that knows the values write them, else one of its own."""
        for stage in reversed(self.stages):
            if self._replaced(stage, stage.and_writes(write), write):
                return
        shape = self.program.nodes[write.node].shape
        self._added(Rows(Space(shape, tuple(range(len(shape)))), plain=True).and_writes(write))

    def _added(self, stage: AnyStage) -> None:
        try:
            self._render(stage, len(self.stages))
        except Mismatch as missing:
            raise _Needed(str(missing)) from None
        self.stages.append(stage)

    def _replaced(self, old: AnyStage, new: AnyStage, write: Write | None = None) -> bool:
        """Whether the stage can do more: what it needs is there, and a write belongs to it."""
        at = next(n for n, stage in enumerate(self.stages) if stage is old)
        before, after = set[str](), set[str]()
        try:
            self._render(old, at, before)
            self._render(new, at, after)
        except Mismatch:
            return False
        if write is not None and not _related(new, after, before):
            return False
        self.stages[at] = new
        return True

    def _render(self, stage: AnyStage, at: int, read: set[str] | None = None) -> list[str]:
        arrays = self._arrays(at)
        values = Values(self.program, arrays, self.names, self.computed - set(arrays))
        values.tuned = self.tuned
        kept = {name: self._array(name) for name in stage.computes if name in self.kept}
        lines = stage.render(values, kept)
        if read is not None:
            read.update(values.read_from)
        return lines

    # -- memory ----------------------------------------------------------------------------------------

    def _arrays(self, at: int) -> dict[str, Array]:
        """What is in memory before a stage."""
        found = dict(self.start)
        for stage in self.stages[:at]:
            found |= {name: self._array(name) for name in stage.computes if name in self.kept}
            found |= {
                write.node: write.array for write in stage.writes if write.array.name not in self._out_names()
            }
        return found

    def _out_names(self) -> set[str]:
        return {array.name for array in self.outputs}

    def _temporary(self) -> set[str]:
        outs = self._out_names()
        written = {w.node for stage in self.stages for w in stage.writes if w.array.name not in outs}
        return written | {name for stage in self.stages for name in stage.computes if name in self.kept}

    def _array(self, name: str) -> Array:
        node = self.program.nodes[name]
        dtype = {"float": "float32", "double": "float64", "int64_t": "int64", "bool": "bool"}[
            computed_in(node.dtype)
        ]
        return Array(f"{self.names[name]}_all", dtype, node.shape)


def _related(stage: AnyStage, after: set[str], before: set[str]) -> bool:
    """Whether the added write reads what the stage computes, or nothing that it doesn't read anyway."""
    if not isinstance(stage, Rows):
        return bool(after & set(stage.computes))
    return bool(after & set(stage.computes)) or after <= before or (stage.plain and bool(after & before))
