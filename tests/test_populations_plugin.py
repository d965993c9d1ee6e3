"""Plug-ins, named as text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from populations.plugin import plugin


def test_a_plugin_may_lie_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_module_of_mine.py").write_text("class Mine: ...\n")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.chdir(tmp_path)
    assert plugin("a_module_of_mine:Mine").__name__ == "Mine"


@pytest.mark.parametrize("name", ["no.such:Thing", "populations:NoSuchName", ":", "populations"])
def test_what_cannot_be_loaded_is_named_with_the_cure(name: str) -> None:
    with pytest.raises(LookupError, match=r"package\.module:Name"):
        plugin(name)
