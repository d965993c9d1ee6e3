"""The suite that every operator has to pass, ours and yours.

Give it the operator by one fixture; parents may be given too where the default ones offer it no place::

    class TestMyOperator(OperatorContract):
        @pytest.fixture
        def operator(self) -> Operator:
            return MyOperator()
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from operators.cpp.nodes import well_formed
from operators.proposal import Brief, Operator, Proposal
from populations.kernel import Kernel

SCALE = """#include <cmath>
#include <cstdint>

constexpr int ROW_CHUNK = 4;  // tune: 1 2 4 8

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static, ROW_CHUNK)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            total += std::exp(in[i]);
        }
        for (int64_t i = 0; i < n; ++i) {
            out[row * n + i] = std::exp(in[i]) / total;
        }
    }
}
"""
BRIEF = Brief(
    problem="scale",
    signature='extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes)',
    inputs=1,
    outputs=1,
)


class OperatorContract:
    """What holds for every operator. A subclass gives the fixture ``operator``; ``parents`` if it must."""

    tries = 8  # states of the generator to try

    @pytest.fixture
    def operator(self) -> Operator:
        """The operator under test."""
        raise NotImplementedError("give your operator by a fixture named 'operator'")

    @pytest.fixture
    def parents(self) -> Sequence[Kernel]:
        """Two kernels; an operator of arity 1 gets the first."""
        other = SCALE.replace("ROW_CHUNK = 4", "ROW_CHUNK = 8").replace("(static, ROW_CHUNK)", "(dynamic)")
        return Kernel(SCALE, "cpp"), Kernel(other.replace("total += ", "total = total + "), "cpp")

    @pytest.fixture
    def brief(self) -> Brief:
        """What the operator is told beside its parents."""
        return BRIEF

    def children(self, operator: Operator, parents: Sequence[Kernel], brief: Brief) -> list[Proposal | None]:
        """One child for each state of the generator."""
        return [operator(parents[: operator.arity], brief, Random(seed)) for seed in range(self.tries)]

    def test_it_has_a_short_name_and_an_arity(self, operator: Operator) -> None:
        """The log and the table of operators show the name."""
        assert operator.name.replace("_", "").isalnum() and len(operator.name) <= 40
        assert operator.arity in (0, 1, 2)

    def test_equal_parents_and_chance_give_an_equal_child(
        self, operator: Operator, parents: Sequence[Kernel], brief: Brief
    ) -> None:
        """A run can be replayed only if nothing else decides."""
        assert self.children(operator, parents, brief) == self.children(operator, parents, brief)

    def test_a_child_differs_from_its_parents(
        self, operator: Operator, parents: Sequence[Kernel], brief: Brief
    ) -> None:
        """An operator that has nothing to offer says None."""
        sources = {parent.source for parent in parents[: operator.arity]}
        for child in filter(None, self.children(operator, parents, brief)):
            assert child.kernel.source not in sources

    def test_a_child_parses(self, operator: Operator, parents: Sequence[Kernel], brief: Brief) -> None:
        """A syntax error would cost a build."""
        for child in filter(None, self.children(operator, parents, brief)):
            if child.kernel.language == "cpp":
                assert well_formed(child.kernel.source)
            if child.kernel.language == "triton":
                compile(child.kernel.source, "kernel.py", "exec")

    def test_parents_stay_as_they_were(
        self, operator: Operator, parents: Sequence[Kernel], brief: Brief
    ) -> None:
        """They go on living in the population."""
        before = [parent.source for parent in parents]
        self.children(operator, parents, brief)
        assert [parent.source for parent in parents] == before

    def test_a_proposal_says_who_made_it_and_why_in_one_line(
        self, operator: Operator, parents: Sequence[Kernel], brief: Brief
    ) -> None:
        """The log shows both beside the verdict."""
        for child in filter(None, self.children(operator, parents, brief)):
            assert child.operator == operator.name
            assert child.rationale.strip() and "\n" not in child.rationale

    def test_a_source_without_an_entry_gives_no_child(
        self, operator: Operator, parents: Sequence[Kernel], brief: Brief
    ) -> None:
        """There is nothing in it to make faster."""
        broken = [Kernel("int x = (;\n", parents[0].language)] * max(operator.arity, 1)
        assert operator.arity == 0 or operator(broken, brief, Random(0)) is None
