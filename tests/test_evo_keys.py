"""Keys of models stay in this process: whatever is started from it is told what it gets to see."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STARTS = {"run", "Popen", "check_output", "check_call", "posix_spawn", "posix_spawnp"}
FILES = [
    file
    for folder in ("evo", "fitness", "operators", "populations")
    for file in (ROOT / folder).rglob("*.py")
]


def starts(file: Path) -> list[ast.Call]:
    """Calls that start another process."""
    tree = ast.parse(file.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in STARTS
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("subprocess", "os")
    ]


@pytest.mark.parametrize(
    "file", [f for f in FILES if starts(f)], ids=lambda file: str(file.relative_to(ROOT))
)
def test_whoever_starts_a_process_says_what_it_sees_of_the_environment(file: Path) -> None:
    for call in starts(file):
        spawned = isinstance(call.func, ast.Attribute) and call.func.attr.startswith("posix_spawn")
        named = {keyword.arg for keyword in call.keywords}
        assert "env" in named or (spawned and len(call.args) >= 3), f"{file}:{call.lineno}"
