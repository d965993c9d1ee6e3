"""Rewrites of arithmetic: cheaper forms of the same value, with the accuracy they declare."""

from __future__ import annotations

from collections.abc import Iterator

from operators.cpp.dependence import invariant
from operators.cpp.loops import loose
from operators.cpp.nodes import Node
from operators.cpp.rewrite import rewrite
from operators.cpp.scalars import FLOATS, called, type_of, types_in
from operators.cpp.syntax import Edit, Edits, Unit
from operators.proposal import Brief

# The argument is reduced with ln 2 in two parts. Half of the power of two goes into the bits, the other half
# is a product: nothing can overflow early, and a subnormal result is rounded once.
EXP = """
// exp(x) in float as 2^n * p(f): within 2 ulp of the true value where that is a normal number, results below
// 2^-126 are off by less than 2^-126; overflows to infinity, exp(-inf) is 0, and NaN stays NaN.
static inline float {name}(float x) {{
    const float capped = x > 89.0f ? 89.0f : x;
    const float low = capped < -104.0f ? -104.0f : capped;
    const float whole = __builtin_rintf(low * 1.44269504f);
    const float r = __builtin_fmaf(whole, -1.42860677e-6f, __builtin_fmaf(whole, -0.693145752f, low));
    float p = 1.9875691500e-4f;
    p = __builtin_fmaf(p, r, 1.3981999507e-3f);
    p = __builtin_fmaf(p, r, 8.3334519073e-3f);
    p = __builtin_fmaf(p, r, 4.1665795894e-2f);
    p = __builtin_fmaf(p, r, 1.6666665459e-1f);
    p = __builtin_fmaf(p, r, 5.0000001201e-1f);
    p = __builtin_fmaf(p, r * r, r) + 1.0f;
    const int32_t n = static_cast<int32_t>(whole);
    const int32_t half = n >> 1;
    uint32_t bits, rest = static_cast<uint32_t>(n - half + 127) << 23;
    __builtin_memcpy(&bits, &p, sizeof bits);
    bits += static_cast<uint32_t>(half) << 23;
    float scale;
    __builtin_memcpy(&p, &bits, sizeof p);
    __builtin_memcpy(&scale, &rest, sizeof scale);
    return p * scale;
}}
"""
EXP_SHORT = """
// exp(x) in float as 2^n * p(f): relative error below (3 + 1.3 |x|) * 2^-24 where the result is a normal
// number, below that off by less than 2^-126; infinity from 128 ln 2 up, exp(-inf) is 0, NaN stays NaN.
static inline float {name}(float x) {{
    const float t = x * 1.44269504f;
    const float above = t < -127.0f ? -127.0f : t;
    const float within = above > 128.0f ? 128.0f : above;
    const float whole = __builtin_rintf(within);
    const float r = within - whole;
    float p = 1.32647273e-3f;
    p = __builtin_fmaf(p, r, 9.67151299e-3f);
    p = __builtin_fmaf(p, r, 5.55073359e-2f);
    p = __builtin_fmaf(p, r, 2.40222424e-1f);
    p = __builtin_fmaf(p, r, 6.93147004e-1f);
    p = __builtin_fmaf(p, r, 1.0f);
    uint32_t bits;
    __builtin_memcpy(&bits, &p, sizeof bits);
    bits += static_cast<uint32_t>(static_cast<int32_t>(whole)) << 23;
    __builtin_memcpy(&p, &bits, sizeof p);
    return p;
}}
"""
TANH = """
// tanh(x) in float, within a few ulp: an odd polynomial below 0.625, else 1 - 2 / (exp(2|x|) + 1), signed.
static inline float {name}(float x) {{
    const float size = __builtin_fabsf(x);
    const float large = 1.0f - 2.0f / ({exp}(2.0f * size) + 1.0f);
    const float s = x * x;
    float p = -5.70498872745e-3f;
    p = __builtin_fmaf(p, s, 2.06390887954e-2f);
    p = __builtin_fmaf(p, s, -5.37397155531e-2f);
    p = __builtin_fmaf(p, s, 1.33314422036e-1f);
    p = __builtin_fmaf(p, s, -3.33332819422e-1f);
    const float small = __builtin_fmaf(p * s, x, x);
    return size < 0.625f ? small : __builtin_copysignf(large, x);
}}
"""


def _calls(unit: Unit, *names: str) -> list[Node]:
    """Calls of library functions by these names, or with an "f" at the end, on floats."""
    own = {function.name for function in unit.functions}
    found = []
    for function in unit.functions:
        types = types_in(unit, function)
        for call in function.body.find("call_expression"):
            name = called(call)
            if name.removesuffix("f") in names and name not in own and type_of(call, types, unit) == "float":
                found.append(call)
    return found


def _renamed(calls: list[Node], name: str) -> Edits:
    functions = [call.part("function") for call in calls]
    return tuple(Edit(function.start, function.end, name) for function in functions)


@rewrite(
    "fast_exp",
    needs="a call of the library's exp in float",
    reason="an own polynomial of declared accuracy is inlined, with less work than the library's function",
)
def fast_exp(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Replaces all of them, or just one, by a polynomial: the shorter or the more accurate one."""
    calls = _calls(unit, "exp")
    name = unit.fresh("exp_fast")
    for chosen in [calls] + [[call] for call in calls if len(calls) > 1]:
        for text in (EXP_SHORT, EXP) if chosen else ():
            yield *unit.include("cstdint"), unit.definition(text.format(name=name)), *_renamed(chosen, name)


@rewrite(
    "tanh_by_exp",
    needs="a call of the library's tanh in float",
    reason="one exponential and one division, inlined, instead of a library call",
)
def tanh_by_exp(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Replaces tanh by ``1 - 2 / (1 + exp(2x))``, with a polynomial for small x."""
    calls = _calls(unit, "tanh")
    if not calls:
        return
    name, fast = unit.fresh("tanh_fast"), unit.fresh("exp_fast")
    text = TANH.format(name=name, exp="std::exp")
    yield *unit.include("cmath", "cstdint"), unit.definition(text), *_renamed(calls, name)
    text = EXP_SHORT.format(name=fast) + TANH.format(name=name, exp=fast)
    yield *unit.include("cstdint"), unit.definition(text), *_renamed(calls, name)


@rewrite(
    "sigmoid_form",
    needs="`0.5 * a * (1 + tanh(u))` in float",
    reason="a / (1 + exp(-2u)) is the same value with an exponential instead of a tanh",
)
def sigmoid_form(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Rewrites the tanh form of GELU as a sigmoid."""
    for call in _calls(unit, "tanh"):
        total = _around(call, "+")
        product = _around(total, "*") if total is not None else None
        if total is None or product is None or not _is_number(_other(total, call), 1.0):
            continue
        factors = _factors(product)
        halves = [factor for factor in factors if _is_number(factor, 0.5)]
        rest = [factor for factor in factors if factor not in halves and not factor.covers(call)]
        if len(halves) == 1 and rest and len(rest) == len(factors) - 2:
            value = " * ".join(factor.text for factor in rest)
            argument = call.part("arguments").text
            text = f"{value} / (1.0f + std::exp(-2.0f * {argument}))"
            parent = product.parent
            text = f"({text})" if parent is not None and parent.kind == "binary_expression" else text
            yield *unit.include("cmath"), Edit(product.start, product.end, text)


@rewrite(
    "power_by_products",
    needs="pow with the exponent 2, 3 or 0.5 in float",
    reason="one or two multiplications, or a square root, instead of a library call",
)
def power_by_products(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Replaces pow by products."""
    for call in _calls(unit, "pow"):
        arguments = call.part("arguments").named_children
        if len(arguments) != 2:
            continue
        value = arguments[0].text
        simple = arguments[0].kind in ("identifier", "subscript_expression")
        for power, text in ((2.0, "v * v"), (3.0, "v * v * v")):
            if _is_number(arguments[1], power) and simple:
                yield (Edit(call.start, call.end, f"({text.replace('v', value)})"),)
            elif _is_number(arguments[1], power):
                name = unit.fresh("square" if power == 2.0 else "cube")
                helper = f"static inline float {name}(float v) {{ return {text}; }}\n"
                yield unit.definition(helper), Edit(call.start, call.end, f"{name}({value})")
        if _is_number(arguments[1], 0.5):
            yield *unit.include("cmath"), Edit(call.start, call.end, f"std::sqrt({value})")


@rewrite(
    "reciprocal",
    needs="a floating division in a loop by something that does not change in it",
    reason="one division before the loop and a multiplication in it; a division takes several times as long",
)
def reciprocal(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Divides once, multiplies in the loop."""
    for loop in unit.loops:
        if not loop.innermost or not loose(loop):
            continue
        types = types_in(unit, loop.function)
        seen: set[str] = set()
        for node in loop.body.find("binary_expression", "assignment_expression"):
            operator, divisor = node.part("operator"), node.part("right")
            whole = type_of(node if node.kind == "binary_expression" else node.part("left"), types, unit)
            if operator.text not in ("/", "/=") or whole not in FLOATS or divisor.text in seen:
                continue
            if divisor.kind == "number_literal" or not invariant(unit, divisor, loop):
                continue
            seen.add(divisor.text)
            one, name = "1.0f" if whole == "float" else "1.0", unit.fresh("inverse")
            line = f"{loop.indent}const {whole} {name} = {one} / {_tight(divisor)};\n"
            edits = [Edit(loop.start, loop.start, line)]
            for other in loop.body.find(node.kind):
                same = (
                    other.part("operator").text == operator.text and other.part("right").text == divisor.text
                )
                if (
                    same
                    and type_of(other if operator.text == "/" else other.part("left"), types, unit) == whole
                ):
                    edits.append(
                        Edit(
                            other.part("operator").start,
                            divisor_end(other),
                            f"{operator.text.replace('/', '*')} {name}",
                        )
                    )
            yield tuple(edits)


@rewrite(
    "divide_less",
    needs="a float expression `a / b * c`",
    reason="a * c / b divides by the same number but starts its multiplication early",
)
def divide_less(unit: Unit, _: Brief) -> Iterator[Edits]:
    """Moves a factor before the division."""
    for function in unit.functions:
        types = types_in(unit, function)
        for node in function.body.find("binary_expression"):
            left = node.part("left")
            if node.part("operator").text != "*" or left.kind != "binary_expression":
                continue
            if left.part("operator").text != "/" or type_of(left, types, unit) not in FLOATS:
                continue
            above, below, factor = left.part("left"), left.part("right"), node.part("right")
            if type_of(factor, types, unit) in FLOATS:
                yield (Edit(node.start, node.end, f"{above.text} * {factor.text} / {below.text}"),)


def divisor_end(division: Node) -> int:
    """Byte after a division's divisor."""
    return division.part("right").end


def _tight(node: Node) -> str:
    plain = ("identifier", "parenthesized_expression", "call_expression", "subscript_expression")
    return node.text if node.kind in plain else f"({node.text})"


def _around(node: Node, operator: str) -> Node | None:
    """The largest chain of one operator around a node, through parentheses."""
    parent = node.parent
    while parent is not None and parent.kind == "parenthesized_expression":
        parent = parent.parent
    found = None
    while (
        parent is not None and parent.kind == "binary_expression" and parent.part("operator").text == operator
    ):
        found, parent = parent, parent.parent
    return found


def _other(node: Node, side: Node) -> Node:
    return node.part("right") if node.part("left").covers(side) else node.part("left")


def _factors(product: Node) -> list[Node]:
    if product.kind == "binary_expression" and product.part("operator").text == "*":
        return _factors(product.part("left")) + _factors(product.part("right"))
    return [product]


def _is_number(node: Node, value: float) -> bool:
    if node.kind != "number_literal":
        return False
    try:
        return float(node.text.rstrip("fFlL")) == value
    except ValueError:
        return False


MATHS = (fast_exp, tanh_by_exp, sigmoid_form, power_by_products, reciprocal, divide_less)
