"""What builds leave in a run's folder: as much as is of use, however long a run goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fitness import cpp, native
from fitness.target import Admission, Built
from populations.kernel import Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def built(number: int, folder: Path) -> Built:
    source = f'extern "C" void kernel_function(float* out0) {{ out0[0] = {number}; }}\n'
    made = cpp.build(
        Admission(Kernel(source, "cpp"), str(number)), folder, sandboxed=not native.features().missing
    )
    assert isinstance(made, Built), made
    return made


def test_libraries_do_not_grow_with_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp, "KEPT", 2)
    first = built(0, tmp_path)
    for number in range(1, 4):
        latest = built(number, tmp_path)
        assert built(0, tmp_path) == first, "what is used again stays"
    assert {file.stem for file in tmp_path.iterdir()} == {first.artifact.stem, latest.artifact.stem}
    assert len(list(tmp_path.iterdir())) == 4


def test_a_library_that_was_removed_is_built_again_to_the_same_machine_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpp, "KEPT", 1)
    first = built(0, tmp_path)
    built(1, tmp_path)
    assert not first.artifact.exists()
    assert built(0, tmp_path) == first
    assert first.artifact.exists()


def test_what_a_killed_build_left_is_swept_and_libraries_stay(tmp_path: Path) -> None:
    first = built(0, tmp_path)
    left = tmp_path / "build-killed"
    left.mkdir()
    (left / "kernel.cpp").write_text("// half a build")
    (tmp_path / "without-notes.so").touch()
    cpp.sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == [first.artifact.with_suffix(".json"), first.artifact]
    assert built(0, tmp_path) == first
