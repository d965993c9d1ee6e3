"""What a problem's reference computes, as plain data: a row of operations on tensors.

The judge traces it from the user's model; whoever drafts a first kernel reads it. It needs no framework and
is small enough to be stored with a run. Texts stand for arguments: ``%x`` is the value of node x, the rest
is Python's notation: ``[0, 1]``, ``-inf``, ``'mean'``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """A size that differs from case to case.

    Attributes:
        name: how the sizes of nodes speak of it.
        position: where the kernel finds it in ``shapes``.
        meaning: "x, dimension 0".
    """

    name: str
    position: int
    meaning: str


@dataclass(frozen=True)
class Node:
    """One operation, and the tensor it makes.

    Attributes:
        name: unique in its graph.
        op: "input", "constant" (its ``values`` in row-major order), "getitem", or a name such as
            "aten.mul.Tensor".
        arguments: texts by the names in the operation's schema, defaults included.
        shape: extents in the given case.
        sizes: the same as C expressions over numbers and the graph's extents.
        dtype: torch's name without "torch."; "tuple" where there are several results.
    """

    name: str
    op: str
    arguments: dict[str, str]
    shape: tuple[int, ...]
    sizes: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Graph:
    """The reference, traced.

    Attributes:
        nodes: each after those it reads; inputs and parameters first, named as the entry's arguments.
        outputs: names of the nodes that are the outputs, in order.
        extents: sizes that are read from ``shapes``; empty where all are those of the given case.
        cases: names of the cases that these sizes fit, the given one first.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    extents: tuple[Extent, ...] = ()
    cases: tuple[str, ...] = ()
