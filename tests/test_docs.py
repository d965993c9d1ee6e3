"""What the docs list is what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from operators import cpp, triton
from operators.cpp.rewrite import Rewrite as CppRewrite
from operators.triton.rewrite import Rewrite as TritonRewrite

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("operator", [*cpp.STRUCTURAL, *triton.STRUCTURAL], ids=lambda each: each.name)
def test_every_rewrite_has_its_row_in_the_docs(operator: CppRewrite | TritonRewrite) -> None:
    row = f"| {operator.family} | `{operator.name}` | {operator.needs} | {operator.reason} |"
    assert row in (DOCS / "operators.md").read_text().splitlines()
