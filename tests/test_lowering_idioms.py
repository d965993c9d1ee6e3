"""Honest kernels, written in more than twenty ways, lower to the same launches under two Tritons."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lower_idioms
import pytest

ROOT = Path(__file__).parents[1]
NAMES = [path.stem for path in lower_idioms.idioms()]
OURS = version("triton")
OTHER = "3.9.0" if OURS.startswith("3.6.") else "3.6.0"
NUMPY = "numpy<2.4"  # what the interpreter of Triton 3.6 wants
MAKE_S = 1800

pytestmark = pytest.mark.timeout(MAKE_S + 600)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return lower_idioms.lower_all(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same work in the environment of the other Triton."""
    folder = tmp_path_factory.mktemp("there")
    script = ROOT / "tests" / "lower_idioms.py"
    done = subprocess.run(
        [other_python(), str(script), str(folder)],
        capture_output=True,
        env=environment(),
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}


def other_python() -> Path:
    """Python of ``.venv-triton-X``, made when missing: our own packages, but another Triton and its NumPy."""
    folder = ROOT / f".venv-triton-{OTHER}"
    python = folder / "bin" / "python"
    with (ROOT / ".venv-triton.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=300)
            wanted = [f"triton=={OTHER}", NUMPY]
            pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", *wanted]
            subprocess.run(pip, check=True, timeout=MAKE_S)
            (site,) = folder.glob("lib/python*/site-packages")
            shared = [entry for entry in sys.path if entry.endswith("site-packages")]
            (site / "shared.pth").write_text("\n".join(shared) + "\n")
            (folder / ".ready").touch()
    return python


def test_there_are_twenty_idioms_and_more() -> None:
    assert len(NAMES) >= 20


def test_the_other_triton_really_ran(here: dict[str, Any], there: dict[str, Any]) -> None:
    assert (here["triton"], there["triton"]) == (OURS, OTHER)
    assert sorted(there["plans"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_idiom_lowers(here: dict[str, Any], name: str) -> None:
    plan = here["plans"][name]
    assert isinstance(plan, dict), plan
    assert all(case["steps"] for case in plan["cases"])


@pytest.mark.parametrize("name", NAMES)
def test_an_idiom_launches_the_same_under_both_tritons(
    here: dict[str, Any], there: dict[str, Any], name: str
) -> None:
    assert there["plans"][name] == here["plans"][name]
