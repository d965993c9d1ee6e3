"""Every operator for Triton passes the suite that users get, and is at home in the expert kernels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from operators import builtin
from operators.proposal import Operator
from operators.testing import BRIEF, OperatorContract
from operators.triton import STRUCTURAL
from operators.triton.syntax import well_formed
from populations.kernel import Kernel

ROOT = Path(__file__).parents[1]
SEEDS = sorted((ROOT / "populations" / "seeds").glob("*/*.py"))
EXAMPLES = sorted((Path(__file__).parent / "operators" / "triton" / "before").glob("*.py"))


def kernel(path: Path) -> Kernel:
    return Kernel(path.read_text(), "triton")


def example(name: str) -> Kernel:
    return next(kernel(path) for path in EXAMPLES if path.stem == name)


def partner(first: Kernel) -> Kernel:
    """A relative of a kernel: other numbers, another exponential, other policies, a pipelined loop."""
    source = first.source.replace('"BLOCK": 32', '"BLOCK": 64').replace(
        "tl.exp(x - top)", "tl.exp(-(top - x))"
    )
    source = source.replace("mask=mask)", 'mask=mask, cache_modifier=".cs")')
    source = source.replace("in range(0, n, BLOCK)", "in tl.range(0, n, BLOCK, num_stages=2)")
    return Kernel(source, "triton")


def halves(first: Kernel) -> Kernel:
    return Kernel(partner(first).source.replace("softmax_kernel", "rows_kernel"), "triton")


@pytest.mark.parametrize("operator", builtin("triton"), ids=lambda operator: operator.name)
class TestBuiltin(OperatorContract):
    @pytest.fixture
    def parents(self, operator: Operator) -> Sequence[Kernel]:
        if operator.arity == 1:
            return [next(k for k in map(kernel, EXAMPLES) if operator([k], BRIEF, Random(0)) is not None)]
        first = example("softmax_long")
        return first, halves(first) if operator.name == "cross_halves" else partner(first)

    def test_it_has_a_child_for_these_parents(self, operator: Operator, parents: Sequence[Kernel]) -> None:
        assert any(operator(parents, BRIEF, Random(seed)) for seed in range(8))


def test_operators_have_different_names_and_a_stable_order() -> None:
    names = [operator.name for operator in builtin("triton")]
    assert len(set(names)) == len(names)
    assert names == [operator.name for operator in builtin("triton")]


def test_no_operator_touches_a_kernel_of_another_language() -> None:
    cpp = Kernel(EXAMPLES[0].read_text(), "cpp")
    for operator in (*STRUCTURAL, *(o for o in builtin("triton") if o.arity == 2)):
        assert operator([cpp] * operator.arity, BRIEF, Random(0)) is None


def test_the_operators_import_neither_torch_nor_triton() -> None:
    program = (
        "import sys, operators\n"
        "operators.builtin('triton')\n"
        "sys.exit(bool({'torch', 'triton'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_child_of_a_seed_is_python_and_differs(path: Path) -> None:
    source, found = path.read_text(), 0
    for rewrite in STRUCTURAL:
        for child in rewrite.children(source, BRIEF):
            found += 1
            assert well_formed(child) and child != source, rewrite.name
    assert found >= 10


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_children_of_children_are_python_for_ten_generations(path: Path) -> None:
    rng, current = Random(f"{path.parent.name} {path.stem}"), kernel(path)
    for _ in range(10):
        child = rng.choice(STRUCTURAL)([current], BRIEF, rng)
        current = child.kernel if child else current
    assert well_formed(current.source)


def test_comments_and_layout_outside_a_rewrite_survive() -> None:
    source = example("softmax").source
    rewrite = next(rewrite for rewrite in STRUCTURAL if rewrite.name == "exp2")
    child = next(rewrite.children(source, BRIEF))
    changed = [
        pair for pair in zip(source.splitlines(), child.splitlines(), strict=True) if len(set(pair)) > 1
    ]
    assert [old.strip() for old, _ in changed] == ["e = tl.exp(x - top)"]
