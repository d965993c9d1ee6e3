"""What the docs list is what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from operators.cpp import STRUCTURAL
from operators.cpp.rewrite import Rewrite

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("operator", STRUCTURAL, ids=lambda operator: operator.name)
def test_every_rewrite_has_its_row_in_the_docs(operator: Rewrite) -> None:
    row = f"| {operator.family} | `{operator.name}` | {operator.needs} | {operator.reason} |"
    assert row in (DOCS / "operators.md").read_text().splitlines()
