"""Compound operations in terms of a few: softmax, variance, products with a bias, maxima and their places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from operators.draft.operations import Operation, Program, Ref
from operators.draft.sizes import ONE, Extent, product


def split(program: Program) -> None:
    """Replace every compound operation; its name stays with the last of its parts."""
    old, program.nodes = program.nodes, {}
    writer = _Writer(program.nodes)
    for operation in old.values():
        rule = RULES.get(operation.op)
        if rule is None:
            program.nodes[operation.name] = operation
        else:
            rule(writer, operation)


class _Writer:
    """Adds operations."""

    def __init__(self, nodes: dict[str, Operation]) -> None:
        self.nodes = nodes

    def add(self, name: str, op: str, shape: tuple[Extent, ...], dtype: str, /, **given: Any) -> Ref:
        while name in self.nodes:
            name += "_"
        self.nodes[name] = Operation(name, op, given, shape, dtype)
        return Ref(name)

    def shape(self, ref: Ref) -> tuple[Extent, ...]:
        return self.nodes[ref].shape


def _kept(shape: tuple[Extent, ...], dims: list[int]) -> tuple[Extent, ...]:
    axes = {dim % len(shape) for dim in dims} if shape else set()
    return tuple(ONE if n in axes else extent for n, extent in enumerate(shape))


def _softmax(writer: _Writer, node: Operation) -> None:
    x, dim = node["self"], node["dim"]
    shape, row = node.shape, _kept(node.shape, [dim])
    top = writer.add(f"{node.name}_top", "draft.top", row, node.dtype, self=x, dim=[dim], keepdim=True)
    shifted = writer.add(f"{node.name}_shifted", "aten.sub", shape, node.dtype, self=x, other=top)
    power = writer.add(f"{node.name}_exp", "aten.exp", shape, node.dtype, self=shifted)
    total = writer.add(f"{node.name}_total", "aten.sum", row, node.dtype, self=power, dim=[dim], keepdim=True)
    if node.op == "aten._softmax":
        writer.add(node.name, "aten.div", shape, node.dtype, self=power, other=total)
        return
    log = writer.add(f"{node.name}_log", "aten.log", row, node.dtype, self=total)
    writer.add(node.name, "aten.sub", shape, node.dtype, self=shifted, other=log)


def _moments(writer: _Writer, node: Operation, x: Ref) -> tuple[Ref, Ref]:
    shape = writer.shape(x)
    dims = node["dim"] or list(range(len(shape)))
    row = _kept(shape, dims)
    correction = 1 if node["correction"] is None else node["correction"]
    dtype = writer.nodes[x].dtype
    mean = writer.add(f"{node.name}_mean", "aten.mean", row, dtype, self=x, dim=dims, keepdim=True)
    far = writer.add(f"{node.name}_far", "aten.sub", shape, dtype, self=x, other=mean)
    square = writer.add(f"{node.name}_square", "aten.mul", shape, dtype, self=far, other=far)
    spread = writer.add(
        f"{node.name}_spread",
        "aten.mean",
        row,
        dtype,
        self=square,
        dim=dims,
        keepdim=True,
        correction=correction,
    )
    return spread, mean


def _var(writer: _Writer, node: Operation) -> None:
    spread, _ = _moments(writer, node, node["self"])
    writer.add(node.name, "aten.view", node.shape, node.dtype, self=spread)


def _var_mean(writer: _Writer, node: Operation) -> None:
    spread, mean = _moments(writer, node, node["self"])
    writer.add(node.name, "tuple", (), "tuple", items=[spread, mean])


def _extreme_with_place(writer: _Writer, node: Operation) -> None:
    if node.dtype != "tuple":
        writer.add(
            node.name,
            node.op.replace("aten.", "aten.a"),
            node.shape,
            node.dtype,
            self=node["self"],
            dim=[],
            keepdim=False,
        )
        return
    kind, dim = node.op[-3:], node["dim"]
    shape = writer.shape(node["self"])
    row = _kept(shape, [dim])
    dtype = writer.nodes[node["self"]].dtype
    value = writer.add(
        f"{node.name}_value", f"aten.a{kind}", row, dtype, self=node["self"], dim=[dim], keepdim=True
    )
    at = writer.add(
        f"{node.name}_at", f"aten.arg{kind}", row, "int64", self=node["self"], dim=dim, keepdim=True
    )
    writer.add(node.name, "tuple", (), "tuple", items=[value, at])


def _getitem(writer: _Writer, node: Operation) -> None:
    source = writer.nodes[node["self"]]
    index = node["index"]
    if source.op == "tuple":
        writer.add(node.name, "aten.view", node.shape, node.dtype, self=source["items"][index])
    elif source.op in PIECES:
        sizes, dim = source["split_sizes"], source["dim"] or 0
        before: int = sum(sizes[:index]) if sizes else 0
        if not sizes or len(set(sizes)) == 1:
            before = product((Extent(index), node.shape[dim]))
            if not sizes:  # the last piece may be a smaller one
                before = Extent(source["split_size"] * index) if not node.shape[dim].factors else before
        writer.add(
            node.name, "aten.slice", node.shape, node.dtype, self=source["self"], dim=dim, start=before
        )
    elif source.op.endswith("_with_indices") and index == 0:
        writer.nodes[node.name] = replace(node, op=source.op, given=source.given)
    elif source.op == "aten.unbind":
        writer.add(
            node.name,
            "aten.select",
            node.shape,
            node.dtype,
            self=source["self"],
            dim=source["dim"],
            index=index,
        )
    else:
        writer.nodes[node.name] = node


def _product_and_sum(writer: _Writer, node: Operation) -> None:
    first, second = ("mat1", "mat2") if node.op == "aten.addmm" else ("batch1", "batch2")
    op = "aten.mm" if node.op == "aten.addmm" else "aten.bmm"
    found = writer.add(
        f"{node.name}_product", op, node.shape, node.dtype, self=node[first], mat2=node[second]
    )
    if node["alpha"] not in (None, 1):
        found = writer.add(
            f"{node.name}_scaled", "aten.mul", node.shape, node.dtype, self=found, other=node["alpha"]
        )
    bias = node["self"]
    if node["beta"] not in (None, 1):
        bias = writer.add(
            f"{node.name}_bias", "aten.mul", writer.shape(bias), node.dtype, self=bias, other=node["beta"]
        )
    writer.add(node.name, "aten.add", node.shape, node.dtype, self=found, other=bias)


PIECES = ("aten.split_with_sizes", "aten.split", "aten.unsafe_split", "aten.unsafe_split_with_sizes")
RULES: dict[str, Callable[[_Writer, Operation], None]] = {
    "aten._softmax": _softmax,
    "aten._log_softmax": _softmax,
    "aten.var": _var,
    "aten.var_mean": _var_mean,
    "aten.max": _extreme_with_place,
    "aten.min": _extreme_with_place,
    "aten.addmm": _product_and_sum,
    "aten.baddbmm": _product_and_sum,
    "getitem": _getitem,
}
