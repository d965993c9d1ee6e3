"""Every built-in operator passes the suite that is shipped to users."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from operators import builtin
from operators.cpp import STRUCTURAL
from operators.cpp.nodes import well_formed
from operators.proposal import Operator
from operators.testing import BRIEF, SCALE, OperatorContract
from populations.kernel import Kernel

SEEDS = sorted((Path(__file__).parents[1] / "populations" / "seeds").glob("*/*.cpp"))
EXAMPLES = sorted((Path(__file__).parent / "operators" / "before").glob("*.cpp"))
# No seed is written so that these apply at once: they mend what other rewrites or users' kernels leave.
NOT_IN_SEEDS = {"one_region", "region_outside", "unswitch", "power_by_products", "keep_values"}


def sites(operator: Operator, paths: list[Path]) -> list[Path]:
    kernels = {path: Kernel(path.read_text(), "cpp") for path in paths}
    return [path for path, kernel in kernels.items() if operator([kernel], BRIEF, Random(0)) is not None]


@pytest.mark.parametrize("operator", builtin("cpp"), ids=lambda operator: operator.name)
class TestBuiltin(OperatorContract):
    @pytest.fixture
    def parents(self, operator: Operator) -> Sequence[Kernel]:
        if operator.arity == 1:
            place = next(path for path in [*EXAMPLES, *SEEDS] if sites(operator, [path]))
            return [Kernel(place.read_text(), "cpp")]
        other = SCALE.replace("ROW_CHUNK = 4", "ROW_CHUNK = 8").replace("total += ", "total = total + ")
        return Kernel(SCALE, "cpp"), Kernel(other.replace("(static, ROW_CHUNK)", "(dynamic)"), "cpp")

    def test_it_has_a_child_for_these_parents(self, operator: Operator, parents: Sequence[Kernel]) -> None:
        assert any(operator(parents, BRIEF, Random(seed)) for seed in range(8))


def test_operators_have_different_names_and_a_stable_order() -> None:
    names = [operator.name for operator in builtin("cpp")]
    assert len(set(names)) == len(names)
    assert names == [operator.name for operator in builtin("cpp")]


def test_a_language_without_operators_is_an_error_that_says_so() -> None:
    with pytest.raises(ValueError, match="no operators for 'cuda'"):
        builtin("cuda")


@pytest.mark.parametrize("operator", STRUCTURAL, ids=lambda operator: operator.name)
def test_every_rewrite_finds_a_place_in_a_seed_or_says_why_not(operator: Operator) -> None:
    assert bool(sites(operator, SEEDS)) != (operator.name in NOT_IN_SEEDS)


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_child_of_a_seed_parses_and_differs(path: Path) -> None:
    source = path.read_text()
    for rewrite in STRUCTURAL:
        for child in rewrite.children(source, BRIEF):
            assert well_formed(child) and child != source, rewrite.name


def test_children_of_children_parse_for_ten_generations() -> None:
    for path in SEEDS:
        rng, kernel = Random(f"{path.parent.name} {path.stem}"), Kernel(path.read_text(), "cpp")
        for _ in range(10):
            child = rng.choice(STRUCTURAL)([kernel], BRIEF, rng)
            kernel = child.kernel if child else kernel
        assert well_formed(kernel.source)
