"""From a graph to the program that a draft is written from: texts parsed, compound operations split."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from operators.draft.operations import Operation, Program, Ref, Varying
from operators.draft.sizes import Extent
from operators.draft.splitting import split
from populations.graph import Graph


def parsed(graph: Graph) -> Program:
    """The program of a graph.

    Raises:
        Undraftable: a part of an operation that has no draft.
    """
    nodes: dict[str, Operation] = {}
    for node in graph.nodes:
        shape = tuple(Extent.read(*pair) for pair in zip(node.shape, node.sizes, strict=True))
        given = {name: _value(text) for name, text in node.arguments.items()}
        op = node.op if "." not in node.op else node.op.rsplit(".", 1)[0]
        nodes[node.name] = Operation(node.name, op, given, shape, node.dtype)
    inputs = tuple(node.name for node in graph.nodes if node.op == "input")
    program = Program(nodes, inputs, graph.outputs)
    split(program)
    _prune(program)
    return program


def _prune(program: Program) -> None:
    """Drop what no output needs, and count who reads what."""
    needed = set(program.outputs) | set(program.inputs)
    for operation in reversed(program.nodes.values()):
        if operation.name in needed:
            needed.update(operation.refs())
    program.nodes = {name: operation for name, operation in program.nodes.items() if name in needed}
    for operation in program.nodes.values():
        program.users.update(operation.refs())


def _value(text: str) -> Any:
    varying = re.fullmatch(r"<([^:]+): (.*)>", text)
    if varying and "double" not in varying[2] and "1.0" not in varying[2]:
        return Extent.read(int(float(varying[1])), varying[2])
    if varying:
        return Varying(float(varying[1]), varying[2])
    text = re.sub(r"%(\w+)", r"'%\1'", text)
    text = re.sub(r"(?<![\w'])inf\b", "1e999", text)
    text = re.sub(r"(?<![\w'])nan\b", "'nan'", text)
    return _named(ast.literal_eval(text))


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, str):
        return Ref(value[1:]) if value.startswith("%") else math.nan if value == "nan" else value
    return value
