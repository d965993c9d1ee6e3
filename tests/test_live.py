"""The check of agents against a real model, on a server that stands in for it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Body, serving

ROOT = Path(__file__).parent.parent
KERNEL = """Rationale: fewer passes

```cpp
#include <cstdint>
static int part{};
extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {{
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out0[i] = x[i];
}}
```
"""


def live(folder: Path, endpoint: str, answers: int) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "benchmarks/live.py")
    command = [sys.executable, script, "--endpoint", endpoint, "--runs", str(folder), "--cpu-minutes", "0"]
    command += ["--minutes", "0.1", "--answers", str(answers)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def rambling() -> Callable[[Body], str]:
    """Now and then a kernel, the same one twice; the rest is what small models say."""
    turns = itertools.count()
    useless = ("", "I'm sorry, I can't do that.", "Softmax is a function.", "```cpp\nint main() {}\n```")

    def reply(_: Body) -> str:
        turn = next(turns)
        return KERNEL.format(turn // 6) if turn % 3 == 0 else useless[turn % len(useless)]

    return reply


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("live")
    with serving(rambling()) as server:
        return folder, live(folder, server.url.removeprefix("http://").removesuffix("/v1"), answers=20)


def again(checked: tuple[Path, object], folder: Path) -> Path:
    return shutil.copytree(checked[0], folder / "live")


def test_useless_answers_pass_through_and_are_accounted_for(
    checked: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    done = checked[1]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answers, no fault" in done.stdout
    for end in ("still-birth: the model declines", "still-birth: the answer is empty", "judged: measured"):
        assert f"| {end} |" in done.stdout


def test_a_check_that_has_its_answers_asks_for_no_more(checked: tuple[Path, object], tmp_path: Path) -> None:
    runs = again(checked, tmp_path)
    before = (runs / "served.jsonl").read_text()
    done = live(runs, "127.0.0.1:9", answers=20)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (runs / "served.jsonl").read_text() == before


def test_an_answer_that_is_gone_from_a_run_is_a_fault(checked: tuple[Path, object], tmp_path: Path) -> None:
    runs = again(checked, tmp_path)
    min((runs / "01" / "calls").glob("*.answer.json")).unlink()
    done = live(runs, "127.0.0.1:9", answers=0)
    assert done.returncode == 1
    assert "calls have no .answer.json" in done.stdout


def test_a_server_that_counted_otherwise_is_a_fault(checked: tuple[Path, object], tmp_path: Path) -> None:
    runs = again(checked, tmp_path)
    notes = runs / "served.jsonl"
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    for line in lines:
        line["tokens_in"] += line["name"] == "01"
    notes.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = live(runs, "127.0.0.1:9", answers=0)
    assert done.returncode == 1
    assert "the server gave no such answer" in done.stdout
