"""``and``, ``or`` and ``not`` in a kernel: whole blocks at a time, where Python looks at one truth value."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import ASTTransformer


def both(left: Any, right: Callable[[], Any]) -> Any:
    """``left and right()``; a constant decides at once, tensors are joined element by element."""
    if isinstance(left, tl.tensor):
        return left.logical_and(right())
    return left and right()


def either(left: Any, right: Callable[[], Any]) -> Any:
    """``left or right()``, likewise."""
    if isinstance(left, tl.tensor):
        return left.logical_or(right())
    return left or right()


def negated(value: Any) -> Any:
    """``not value``."""
    return value == 0 if isinstance(value, tl.tensor) else not value


NAMES = {ast.And: "_kernel_and", ast.Or: "_kernel_or", ast.Not: "_kernel_not"}
FUNCTIONS = {"_kernel_and": both, "_kernel_or": either, "_kernel_not": negated}


class Logic(ast.NodeTransformer):
    """Writes ``and``, ``or``, ``not`` and chained comparisons as calls."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``a and b and c``, from the left; the right sides stay unevaluated until asked."""
        return self._joined(node.op, [self.visit(value) for value in node.values])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``a < b < c`` is ``a < b and b < c``: kernels have no side effects in expressions."""
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return self._joined(ast.And(), [ast.Compare(left, [op], [right]) for left, op, right in pairs])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """``not a``."""
        operand = self.visit(node.operand)
        if not isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, operand)
        return ast.Call(ast.Name(NAMES[ast.Not], ast.Load()), [operand], [])

    @staticmethod
    def _joined(op: ast.boolop, values: list[ast.expr]) -> ast.expr:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        found = values[0]
        for value in values[1:]:
            name = ast.Name(NAMES[type(op)], ast.Load())
            found = ast.Call(name, [found, ast.Lambda(args=nothing, body=value)], [])
        return found


class Transformer(ASTTransformer):  # type: ignore[misc]
    """Triton's rewriting of kernels for its interpreter, after ours."""

    def visit(self, node: ast.AST) -> Any:
        """A whole function, or part of one."""
        return super().visit(Logic().visit(node) if isinstance(node, ast.Module) else node)
