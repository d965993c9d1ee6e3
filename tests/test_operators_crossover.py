from __future__ import annotations

from random import Random

from operators import CrossFunctions, CrossNumbers, CrossPragmas, configuration
from operators.proposal import Proposal
from operators.testing import BRIEF
from populations.kernel import Kernel

FIRST = """#include <cstdint>

constexpr int LANES = 8;  // tune: 8 16
constexpr int ROWS = 1;  // tune: 1 2 4

static inline float half(float v) { return v / 2.0f; }

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    for (int64_t r = 0; r < shapes[0]; r += ROWS) {
        for (int64_t k = r; k < r + ROWS && k < shapes[0]; ++k) out[k] = half(x[k]);
    }
#pragma omp simd simdlen(LANES)
    for (int64_t i = 0; i < shapes[1]; ++i) {
        out[i] = out[i] + x[i];
    }
}
"""
SECOND = """#include <cmath>
#include <cstdint>

constexpr float HALF = 0.5f;
constexpr int LANES = 16;  // tune: 8 16
constexpr int ROWS = 8;  // tune: 1 2 4 8
constexpr int CHUNK = 512;  // tune: 256 512

struct Pair {
    float value;
};

static inline float times_half(float v) {
    const Pair pair = {v};
    return pair.value * HALF;
}

static inline float half(float v) { return times_half(v); }

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    for (int64_t k = 0; k < shapes[0]; ++k) out[k] = half(x[k]);
#pragma omp parallel for schedule(static, CHUNK)
    for (int64_t i = 0; i < shapes[1]; ++i) {
        out[i] = std::fabs(x[i]) - x[i];
    }
}
"""
PARENTS = (Kernel(FIRST, "cpp"), Kernel(SECOND, "cpp"))


def children(operator: CrossNumbers | CrossFunctions | CrossPragmas) -> list[Proposal]:
    return [child for seed in range(30) if (child := operator(PARENTS, BRIEF, Random(seed))) is not None]


def test_numbers_come_from_the_second_parent_where_the_first_allows_them() -> None:
    assert {configuration(child.kernel.source) for child in children(CrossNumbers())} == {(16, 1)}


def test_equal_numbers_leave_nothing_to_cross() -> None:
    assert CrossNumbers()((PARENTS[0], PARENTS[0]), BRIEF, Random(0)) is None


def test_a_function_comes_with_what_it_needs_and_no_more() -> None:
    sources = [child.kernel.source for child in children(CrossFunctions())]
    with_half = next(source for source in sources if "times_half" in source and "ROWS" in source)
    assert "constexpr float HALF = 0.5f;" in with_half
    assert (
        with_half.index("HALF = 0.5f")
        < with_half.index("times_half(float v)")
        < with_half.index("half(x[k])")
    )
    assert "CHUNK" not in with_half


def test_the_entry_of_the_second_parent_runs_on_the_helpers_of_the_first() -> None:
    sources = [child.kernel.source for child in children(CrossFunctions())]
    entry = next(source for source in sources if "std::fabs" in source)
    assert "return v / 2.0f" in entry and "times_half" not in entry
    assert "constexpr int CHUNK = 512;  // tune: 256 512" in entry
    assert "ROWS" not in entry  # nothing uses it any more
    assert "#include <cmath>" in entry


def test_a_directive_moves_to_the_same_loop_with_its_number() -> None:
    sources = {child.kernel.source for child in children(CrossPragmas())}
    assert len(sources) == 1
    source = sources.pop()
    assert "#pragma omp parallel for schedule(static, CHUNK)" in source and "omp simd" not in source
    assert "constexpr int CHUNK = 512;" in source and "LANES" not in source


def test_a_directive_does_not_move_to_a_loop_that_could_not_bear_it() -> None:
    chained = FIRST.replace("out[i] = out[i] + x[i]", "out[i + 1] = out[i] + x[i]").replace(
        "#pragma omp simd simdlen(LANES)\n", ""
    )
    assert CrossPragmas()((Kernel(chained, "cpp"), PARENTS[1]), BRIEF, Random(0)) is None


def test_parents_in_a_language_without_syntax_here_give_no_child() -> None:
    foreign = (Kernel("x = 1", "triton"), Kernel("y = 1", "triton"))
    assert CrossFunctions()(foreign, BRIEF, Random(0)) is None
    assert CrossPragmas()(foreign, BRIEF, Random(0)) is None
