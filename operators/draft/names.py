"""C names for all nodes: as they were called, no two alike, none that loops, C++ or its library use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from operators.draft.operations import Program

LOOPS = (
    "row", "i", "j", "k", "l", "m", "r", "first", "start", "width", "height", "column", "batch", "total",
    "panel", "left", "image", "channel", "plane", "end", "low", "high", "shift", "element", "feature", "ox",
    "oy", "oz", "ix", "iy", "iz", "kx", "ky", "kz", "far_x", "far_y", "far_z", "count_x", "count_y",
    "count_z", "shapes",
)  # fmt: skip
KEYWORDS = (
    "and", "auto", "bool", "break", "case", "char", "class", "const", "continue", "default", "delete", "do",
    "double", "else", "enum", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int",
    "long", "namespace", "new", "not", "operator", "or", "private", "protected", "public", "register",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw",
    "true", "try", "typedef", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
)  # fmt: skip
FUNCTIONS = (
    "abs", "acos", "acosh", "asin", "asinh", "at_least", "at_most", "atan", "atan2", "atanh", "ceil",
    "ceil_div", "cos", "cosh", "div", "erf", "erfc", "exp", "exp2", "expm1", "floor", "floor_div", "fmod",
    "free", "from_end", "gamma", "index", "j0", "j1", "jn", "log", "log10", "log1p", "log2", "malloc",
    "memcpy", "nearbyint", "pow", "remainder", "remainder_of", "round", "signbit", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc", "y0", "y1", "yn",
)  # fmt: skip


def c_names(program: Program, outputs: Sequence[str], taken: Iterable[str]) -> dict[str, str]:
    """Names for all nodes, and for "output 0" and so on.

    Args:
        program: its inputs come first and keep their names where they can.
        outputs: what the outputs are called.
        taken: names that are in use already.
    """
    used = {*LOOPS, *KEYWORDS, *FUNCTIONS, *taken}
    found: dict[str, str] = {}
    wanted = [(name, name) for name in program.inputs]
    wanted += [(f"output {n}", name) for n, name in enumerate(outputs)]
    wanted += [(name, name) for name in program.nodes if name not in program.inputs]
    for key, name in wanted:
        name = name.lstrip("_") or "value"
        while name in used:
            name += "_"
        used.add(name)
        found[key] = name
    return found
