"""What the docs list is what there is."""

from __future__ import annotations

import re
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


FOLDERS = [
    "evo",
    "fitness",
    "fitness/exported",
    "fitness/interpreter",
    "fitness/judge",
    "fitness/judge/cuda",
    "fitness/lowering",
    "operators",
    "operators/agents",
    "populations",
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_has_its_place_on_the_architecture_page(folder: str) -> None:
    text = (DOCS / "architecture.md").read_text()
    named = {word for code in re.findall(r"`([a-z_ ]+)`", text) for word in code.split()}
    modules = {path.stem for path in (DOCS.parent / folder).glob("*.py")}
    assert modules - named <= {"__init__", "__main__", "testing"}
