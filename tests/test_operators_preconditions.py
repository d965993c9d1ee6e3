"""Where a rewrite would change the meaning, it has no child."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from operators.cpp import STRUCTURAL
from operators.cpp.maths import EXP, EXP_SHORT, TANH
from operators.cpp.rewrite import without_idle_knobs
from operators.cpp.syntax import parse
from operators.testing import BRIEF
from tests.operators.library import one_library

REWRITES = {rewrite.name: rewrite for rewrite in STRUCTURAL}


def kernel(body: str, before: str = "") -> str:
    return f"""{before}
extern "C" void kernel_function(const float* x, const float* y, float* out, const int64_t* shapes) {{
    const int64_t rows = shapes[0], n = shapes[1];
{body}
}}
"""


def children(name: str, body: str, before: str = "") -> list[str]:
    return list(REWRITES[name].children(kernel(body, before), BRIEF))


LOOP = "for (int64_t i = 0; i < n; ++i)"
MAX = f"float m = 0; {LOOP} m = std::max(m, x[i]);"
OMP = "#pragma omp parallel for\n"
ROWS = "for (int64_t r = 0; r < rows; ++r)"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("fuse", f"{LOOP} out[i] = x[i]; {LOOP} out[i] = out[n - 1 - i];"),
        ("prefetch", f"{LOOP} {{ const int64_t k = rows + i; out[k] = x[k]; }}"),
        ("prefetch", f"{LOOP} {{ const float* at = x + rows; out[i] = at[i]; }}"),
        ("fuse", f"float s = 0; {LOOP} s += x[i]; {LOOP} out[i] = s;"),
        ("fuse", f"{LOOP} out[i] = x[i]; for (int64_t i = 0; i < rows; ++i) out[i] += 1;"),
        ("fuse", f"float s = 0; {LOOP} s += x[i]; const float t = s * 2; {LOOP} out[i] = t;"),
        ("fuse", f"{LOOP} out[i] = x[i]; strange(out); {LOOP} out[i] += 1;"),
        ("fission", f"{LOOP} {{ out[i] = x[i]; out[i] += out[n - 1 - i]; }}"),
        ("fission", f"float s = 0; {LOOP} {{ s += x[i]; out[i] = s; }}"),
        ("fission", f"{LOOP} {{ float v; v = x[i]; out[i] = v; }}"),
        ("simd", f"{LOOP} out[i] = i > 0 ? out[i - 1] : x[i];"),
        ("simd", f"float s = 0; {LOOP} {{ s = s * 2 + x[i]; }} out[0] = s;"),
        ("simd", f"{LOOP} {{ if (x[i] < 0) break; out[i] = x[i]; }}"),
        ("simd", f"{LOOP} out[(int64_t)x[i]] = y[i];"),
        ("simd", f"float m = 0; {LOOP} {{ m = x[i] > m || x[i] != x[i] ? x[i] : m; }} out[0] = m;"),
        ("parallelise", f"{ROWS} {{ for (int64_t i = 0; i < rows; ++i) out[r * n + i] = 1; }}"),
        ("parallelise", f"{ROWS} {{ {LOOP} out[i] += x[r * n + i]; }}"),
        ("parallelise", f"float last = 0; {ROWS} {{ last = x[r]; out[r] = last; }}"),
        ("parallelise", f"{ROWS} {{ out[r] = rand(); }}"),
        ("collapse", f"{OMP}{ROWS} {{ for (int64_t i = 0; i < r; ++i) out[r * n + i] = 1; }}"),
        ("collapse", f"{OMP}{ROWS} {{ float s = 0; {LOOP} s += x[i]; out[r] = s; }}"),
        ("interchange", f"{ROWS} {{ {LOOP} out[i] = out[i] * 2 + x[r * n + i]; }}"),
        ("accumulators", f"float s = 0; {LOOP} {{ s += x[i]; out[i] = s; }}"),
        ("accumulators", f"float s = 0; {LOOP} {{ s = s * 2 + x[i]; }} out[0] = s;"),
        ("tile", f"{LOOP} {{ if (x[i] > 0) break; out[i] = x[i]; }}"),
        ("reciprocal", f"const int d = shapes[2]; {LOOP} out[i / d] = x[i];"),
        ("reciprocal", f"{LOOP} out[i] = x[i] / y[i];"),
        ("hoist", f"float s = 1; {LOOP} {{ s += 1; out[i] = x[i] * std::sqrt(s); }}"),
        ("hoist", f"{LOOP} out[i] = x[i] * std::sqrt(out[0]);"),
        ("unswitch", f"{LOOP} {{ if (x[i] > 0) out[i] = x[i]; }}"),
        ("online", f"{MAX} float s = 0; {LOOP} s += std::exp(m - x[i]); out[0] = s;"),
        ("online", f"{MAX} float s = 0; {LOOP} s += x[i] - m; out[0] = s;"),
        ("recompute_values", f"{LOOP} out[i] = std::exp(x[i]); {LOOP} out[i] *= 2; out[0] += 1;"),
        ("keep_values", f"float s = 0; {LOOP} s += std::exp(x[i]); {LOOP} out[i] = std::exp(x[i] * 2) / s;"),
        ("prefix_scan", f"float s = 0; {LOOP} {{ s *= x[i]; out[i] = s; }}"),
        ("prefix_scan", f"float s = 0; {LOOP} {{ out[i] = s; s += x[i]; }}"),
        ("stream_stores", f"{LOOP} out[i] += x[i];"),
        ("stream_stores", f"{LOOP} {{ if (x[i] > 0) out[i] = x[i]; }}"),
        ("sigmoid_form", f"{LOOP} out[i] = 0.25f * x[i] * (1.0f + std::tanh(x[i]));"),
        ("power_by_products", f"{LOOP} out[i] = std::pow(x[i], 2.5f);"),
        ("row_block", f"{ROWS} {{ for (int64_t i = 0; i < r; ++i) out[r * n + i] = x[i]; }}"),
        ("one_region", f"float s = 0;\n#pragma omp parallel for reduction(+ : s)\n{LOOP} s += x[i];\n"
                       f"#pragma omp parallel for\n{LOOP} out[i] = x[i];"),
    ],
)  # fmt: skip
def test_a_rewrite_that_would_change_the_meaning_has_no_child(name: str, body: str) -> None:
    assert children(name, body) == []


def test_layout_and_comments_outside_the_edit_survive() -> None:
    source = kernel(f"    // keep   me\n    {LOOP} {{\n        out[i] = x[i]  *  2;  // and me\n    }}")
    (child,) = REWRITES["unroll"].children(source, BRIEF)
    assert "    // keep   me\n" in child and "out[i] = x[i]  *  2;  // and me" in child


def test_a_constant_goes_with_its_last_use() -> None:
    line = "constexpr int UNROLL = 4;  // tune: 1 2 4\n"
    assert without_idle_knobs(f"{line}int x;\n") == "int x;\n"
    assert without_idle_knobs(f"{line}int x = UNROLL;\n") == f"{line}int x = UNROLL;\n"


def test_new_names_do_not_clash_with_old_ones() -> None:
    (child,) = children("unroll", f"int UNROLL = 1; {LOOP} out[i] = x[i] * UNROLL;")
    assert "constexpr int UNROLL_2 = 4;" in child and "#pragma GCC unroll UNROLL_2" in child


def test_a_loop_that_changes_its_own_variable_is_not_canonical() -> None:
    assert parse(kernel(f"{LOOP} {{ out[i] = x[i]; i += 1; }}")).loops == ()


def test_parsing_again_is_free() -> None:
    assert parse(kernel("")) is parse(kernel(""))


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The rewrites' own exp and tanh, each over an array."""
    loop = "for (int64_t i = 0; i < *count; ++i) to[i] = {}(from[i]);"
    text = "#include <cstdint>\n" + EXP.format(name="fast") + EXP_SHORT.format(name="short_form")
    text += TANH.format(name="bent", exp="short_form")
    text += 'extern "C" void kernel_function(const float* from, float* to, const int64_t* count) {'
    folder: Path = tmp_path_factory.mktemp("functions")
    calls = {"fast_exp": "fast", "short_exp": "short_form", "fast_tanh": "bent"}
    sources = {name: text + loop.format(call) + "}\n" for name, call in calls.items()}
    return one_library(sources, folder / "functions.so")


def values(functions: ctypes.CDLL, name: str, at: np.ndarray) -> np.ndarray:
    at, out, count = at.astype(np.float32), np.empty(at.size, np.float32), np.array([at.size], np.int64)
    getattr(functions, name)(*(ctypes.c_void_p(array.ctypes.data) for array in (at, out, count)))
    return out


@pytest.mark.parametrize(("name", "constant", "slope"), [("fast_exp", 4.0, 0.0), ("short_exp", 3.0, 1.3)])
def test_the_exponentials_are_as_accurate_as_they_say(
    functions: ctypes.CDLL, name: str, constant: float, slope: float
) -> None:
    at = np.linspace(-110, 88.7, 2_000_001).astype(np.float32)
    exact = np.exp(at.astype(np.float64))
    error, normal = np.abs(values(functions, name, at) - exact), exact >= 2.0**-126
    bound = (constant + slope * np.abs(at.astype(np.float64))) * 2.0**-24 * exact
    assert np.all(error[normal] <= bound[normal])
    assert np.all(error[~normal] < 2.0**-126)


@pytest.mark.parametrize("name", ["fast_exp", "short_exp"])
def test_the_exponentials_are_right_at_the_ends(functions: ctypes.CDLL, name: str) -> None:
    got = values(functions, name, np.array([-np.inf, -200, 0, -0.0, 88.7, 89, 1e30, np.inf, np.nan]))
    np.testing.assert_array_equal(got[:4], [0, 0, 1, 1])
    assert np.isfinite(got[4]) and np.all(np.isposinf(got[5:8])) and np.isnan(got[8])


def test_the_fast_tanh_is_within_a_few_ulp_everywhere(functions: ctypes.CDLL) -> None:
    at = np.concatenate([np.linspace(-12, 12, 1_000_001), 2.0 ** np.linspace(-40, 3, 100_001)]).astype(
        np.float32
    )
    exact = np.tanh(at.astype(np.float64))
    assert np.all(np.abs(values(functions, "fast_tanh", at) - exact) <= 4 * 2.0**-24 * np.abs(exact))
    ends = values(functions, "fast_tanh", np.array([-np.inf, np.inf, np.nan, 0.0]))
    assert ends[0] == -1 and ends[1] == 1 and np.isnan(ends[2]) and ends[3] == 0
