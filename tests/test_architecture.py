"""The rules that never bend, checked from the outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "triton", "pandas", "matplotlib", "openai", "jinja2")


def loaded_by(*arguments: str) -> set[str]:
    """Modules that a Python process has loaded at its end."""
    probe = "import sys, atexit; atexit.register(lambda: print('\\n'.join(sys.modules)))"
    run = "import runpy; sys.argv = ['evo', *sys.argv[1:]]; runpy.run_module('evo', run_name='__main__')"
    code = f"{probe}\n{run}"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["evo", "operators", "operators.agents", "fitness", "populations"])
def test_importing_a_package_loads_no_heavy_library(package: str) -> None:
    code = f"import sys, {package}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_judging_from_outside_loads_no_torch() -> None:
    code = "import sys, fitness.cpu, fitness.cpp; print([m for m in ('torch', 'triton') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_help_loads_neither_a_heavy_library_nor_the_engine() -> None:
    modules = loaded_by("--help")
    assert "evo.command" in modules
    assert not modules & {*HEAVY, "deap", "pydantic", "sqlite3", "evo.coordinator"}


def test_the_judge_package_is_imported_by_nothing_outside_itself() -> None:
    importers = [
        path.relative_to(ROOT)
        for folder in ("evo", "operators", "populations", "fitness")
        for path in (ROOT / folder).rglob("*.py")
        if "judge" not in path.parts
        and re.search(r"^\s*(from|import) fitness\.judge", path.read_text(), re.MULTILINE)
    ]
    assert importers == []


def test_no_pickle_anywhere() -> None:
    users = [
        path.relative_to(ROOT)
        for folder in ("evo", "operators", "populations", "fitness")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(from|import) (pickle|dill|shelve|marshal)\b", path.read_text(), re.MULTILINE)
    ]
    assert users == []


def test_the_judge_gets_no_secret_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from fitness.cpu import environment

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert not [value for value in environment().values() if "secret" in value]


def test_the_built_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    build = ["wheel", "--no-deps", "--no-build-isolation", "-q", "-w", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("kernel_evo-*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    install = ["--python", str(python), "install", "-q", "--no-deps", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, capture_output=True)
    # The libraries come from this environment; only our own four packages come from the wheel.
    here = next(path for path in sys.path if path.endswith("site-packages"))
    code = (
        "import evo, operators, fitness, populations, fitness.native as n, pathlib\n"
        "from populations.seeds import seeds\n"
        "print(evo.__file__, len(seeds('softmax', 'cpp')), 'softmax' in fitness.problem_names(),"
        " (pathlib.Path(n.__file__).parent / 'runner.c').exists())\n"
        "from operators.agents.guides import languages\n"
        "templates = pathlib.Path(operators.__file__).parent / 'agents' / 'templates'\n"
        "print(*languages(), (templates / 'mutate.j2').exists())"
    )
    paths = {**os.environ, "PYTHONPATH": here}
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, cwd=tmp_path, env=paths)
    assert done.stdout.split()[1:] == ["2", "True", "True", "cpp", "triton", "True"], done.stderr
    assert str(tmp_path) in done.stdout
