"""Rewrites of arithmetic: cheaper forms of the same value."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from operators.proposal import Brief
from operators.triton.flow import assigned, called, calls, name_nodes
from operators.triton.rewrite import rewrite
from operators.triton.shapes import shape_of, shapes
from operators.triton.structure import Jit, Unit
from operators.triton.syntax import Edit, Edits

LOG2E = 1.4426950408889634
# Near zero the quotient cancels, so an odd polynomial takes over; its first dropped term is below 1e-9 there.
TANH = """@triton.jit
def {name}(x):
    size = tl.abs(x)
    e = tl.exp2(size * -2.8853900817779268)
    large = (1.0 - e) / (1.0 + e)
    s = x * x
    small = x * (1.0 + s * (-0.3333333333 + s * (0.1333333333 - s * 0.0539682540)))
    return tl.where(size < 0.0625, small, tl.where(x < 0.0, -large, large))


"""


def grouped(text: str) -> str:
    """The text of an operand, in parentheses unless it binds tighter than any operator."""
    return text if re.fullmatch(r"[\w.]*(\([^()]*\)|\[[^\[\]]*\])?", text) else f"({text})"


def added(unit: Unit, call: cst.Call, name: str, text: str) -> Edit:
    """A further keyword argument of a call that has some arguments."""
    at = unit.tree.end(call.args[-1].value)
    return Edit(at, at, f", {name}={text}")


def all_or_one(found: list[cst.Call]) -> list[list[cst.Call]]:
    """All of the calls; and where there are several, each by itself."""
    return ([found] if found else []) + [[call] for call in found if len(found) > 1]


@rewrite(
    "exp2",
    needs="`tl.exp(e)`",
    reason="the hardware has 2^x: log2(e) is folded into a constant instead of a product of its own",
)
def exp2(unit: Unit, _: Brief) -> Iterator[Edits]:
    """All of them, or one; a literal factor of the argument takes up log2(e)."""
    found = [call for jit in unit.jits for call in calls(unit, jit.node, "exp") if len(call.args) == 1]
    clear = [call for call in found if not _nested(unit, call, found)]
    for chosen in all_or_one(clear):
        yield tuple(
            unit.tree.swap(call, f"tl.exp2({_scaled(unit, call.args[0].value, LOG2E)})") for call in chosen
        )


def _nested(unit: Unit, call: cst.Call, others: list[cst.Call]) -> bool:
    return any(other is not call and unit.tree.covers(other, call) for other in others)


def _scaled(unit: Unit, node: cst.BaseExpression, factor: float) -> str:
    """The text of a value times a factor, which goes into a literal factor where there is one."""
    text = unit.tree.text(node)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return _scaled(unit, node.expression, -factor)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, cst.Float):
                return f"{grouped(unit.tree.text(other))} * {float(side.value) * factor!r}"
    return f"{grouped(text)} * {factor!r}"


@rewrite(
    "reciprocal",
    needs="`x / s` of a tile by a value with fewer elements",
    reason="one division per row and a product per element; a division takes several instructions",
)
def reciprocal(unit: Unit, _: Brief) -> Iterator[Edits]:
    """One division at a time, then all."""
    found = []
    for jit in unit.jits:
        known = shapes(unit, jit)
        for node in unit.tree.find(jit.node, cst.BinaryOperation):
            if not isinstance(node.operator, cst.Divide):
                continue
            left, right = shape_of(unit, node.left, known), shape_of(unit, node.right, known)
            if left and right is not None and right != left and not _is_one(unit, node.left):
                text = grouped(unit.tree.text(node.right))
                operator = Edit(unit.tree.end(node.left), unit.tree.start(node.right), " * ")
                found.append((operator, unit.tree.swap(node.right, f"(1.0 / {text})")))
    yield from found


def _is_one(unit: Unit, node: cst.CSTNode) -> bool:
    return unit.tree.text(node) in ("1", "1.0")


@rewrite(
    "rsqrt",
    needs="a division by `tl.sqrt(e)`, or by a name for it",
    reason="the hardware has the reciprocal root as one instruction",
)
def rsqrt(unit: Unit, _: Brief) -> Iterator[Edits]:
    """``1 / tl.sqrt(e)`` and ``x / tl.sqrt(e)``."""
    for jit in unit.jits:
        roots = {
            name: value
            for line in unit.tree.find(jit.node, cst.SimpleStatementLine)
            if (found := assigned(line)) and (value := found[1]) and _root(unit, value) and (name := found[0])
        }
        for node in unit.tree.find(jit.node, cst.BinaryOperation):
            if not isinstance(node.operator, cst.Divide):
                continue
            right = node.right
            if isinstance(right, cst.Name) and right.value in roots and _once(unit, jit, right.value):
                argument = unit.tree.text(_root(unit, roots[right.value]) or right)
                edits = (unit.tree.swap(roots[right.value], f"tl.rsqrt({argument})"),)
                yield (*edits, _times(unit, node, right.value))
            elif (argument_node := _root(unit, right)) is not None:
                yield (_times(unit, node, f"tl.rsqrt({unit.tree.text(argument_node)})"),)


def _root(unit: Unit, node: cst.CSTNode) -> cst.BaseExpression | None:
    if isinstance(node, cst.Call) and called(unit, node) == "sqrt" and len(node.args) == 1:
        return node.args[0].value
    return None


def _once(unit: Unit, jit: Jit, name: str) -> bool:
    """Whether a name is written once and read once."""
    return len(name_nodes(unit, jit.node, name)) == 2


def _times(unit: Unit, node: cst.BinaryOperation, factor: str) -> Edit:
    if _is_one(unit, node.left):
        return unit.tree.swap(node, factor)
    return Edit(unit.tree.end(node.left), unit.tree.end(node.right), f" * {factor}")


@rewrite(
    "tanh_by_exp2",
    needs="a call of a library's tanh",
    reason="one exponential and one division inlined, with a polynomial where they would cancel",
)
def tanh_by_exp2(unit: Unit, _: Brief) -> Iterator[Edits]:
    """An own function takes its place."""
    found = [call for jit in unit.jits for call in calls(unit, jit.node, "tanh")]
    if found and (first := _first_jit(unit)) is not None:
        name = unit.tree.fresh("tanh_by_exp2")
        at = unit.tree.lines(first)[0]
        swaps = (unit.tree.swap(call.func, name) for call in found)
        yield (Edit(at, at, TANH.format(name=name)), *swaps)


def _first_jit(unit: Unit) -> cst.CSTNode | None:
    """The first decorator of the first jit function: in front of it stands what it calls."""
    return unit.jits[0].node.decorators[0] if unit.jits else None


@rewrite(
    "sigmoid_form",
    needs="`0.5 * a * (1 + tanh(u))`",
    reason="a * sigmoid(2u) is the same value with one exponential, and nothing cancels in it",
)
def sigmoid_form(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Also where the half or the sum stand on the other side."""
    for jit in unit.jits:
        for call in calls(unit, jit.node, "tanh"):
            above = list(unit.tree.above(call))
            plus, products = above[0], above[1:]
            if not isinstance(plus, cst.BinaryOperation) or not isinstance(plus.operator, cst.Add):
                continue
            one = plus.left if plus.right is call else plus.right
            product = products[0]
            if not _is_one(unit, one) or not isinstance(product, cst.BinaryOperation):
                continue
            top = products[1] if _is_product(products[1]) else product
            factors = [node for node in _factors(top) if node is not plus] if _is_product(product) else []
            halves = [node for node in factors if unit.tree.text(node) == "0.5"]
            if halves and len(factors) == 2:
                other = next(node for node in factors if node is not halves[0])
                argument = unit.tree.text(call.args[0].value)
                text = f"{grouped(unit.tree.text(other))} * tl.sigmoid(2.0 * {grouped(argument)})"
                yield (unit.tree.swap(top, text),)


def _is_product(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply)


def _factors(node: cst.BaseExpression | cst.CSTNode) -> list[cst.CSTNode]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


@rewrite(
    "sigmoid_by_exp2",
    needs="`a * tl.sigmoid(b)`",
    reason="a / (1 + 2^(-b log2 e)) has one product less, and its factors fold into one constant",
)
def sigmoid_by_exp2(unit: Unit, _: Brief) -> Iterator[Edits]:
    """The factor in front becomes the numerator."""
    for jit in unit.jits:
        for call in calls(unit, jit.node, "sigmoid"):
            holder = next(unit.tree.above(call))
            if len(call.args) != 1:
                continue
            below = f"(1.0 + tl.exp2({_scaled(unit, call.args[0].value, -LOG2E)}))"
            if _is_product(holder) and isinstance(holder, cst.BinaryOperation) and holder.right is call:
                yield (Edit(unit.tree.end(holder.left), unit.tree.end(call), f" / {below}"),)
            elif _is_product(holder) and isinstance(holder, cst.BinaryOperation):
                yield (unit.tree.swap(holder, f"{grouped(unit.tree.text(holder.right))} / {below}"),)


MATHS = (exp2, reciprocal, rsqrt, tanh_by_exp2, sigmoid_form, sigmoid_by_exp2)
