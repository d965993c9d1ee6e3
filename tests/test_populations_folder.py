"""Run folders: default names, and what a user can get wrong about them."""

from __future__ import annotations

import datetime
import os

import pytest

from populations.folder import FolderLock, RunError, claim_folder, make_folder, require_run
from populations.log import EventLog
from populations.testing import STARTED

TODAY = datetime.date(2026, 11, 30)


def test_default_names_count_up(tmp_path):
    names = [claim_folder("softmax", TODAY, tmp_path / "runs").name for _ in range(3)]
    assert names == ["2026-11-30-softmax", "2026-11-30-softmax-2", "2026-11-30-softmax-3"]


def test_a_problems_odd_name_makes_a_plain_folder(tmp_path):
    assert claim_folder("../my problem: v2!", TODAY, tmp_path).name == "2026-11-30-my-problem-v2"
    assert claim_folder("...", TODAY, tmp_path).name == "2026-11-30-run"


def test_a_new_run_folder_holds_its_settings_and_a_place_for_artifacts(tmp_path):
    run = make_folder(tmp_path / "a" / "run", 'problem = "softmax"\n')
    assert (run / "run.toml").read_text() == 'problem = "softmax"\n'
    assert (run / "artifacts").is_dir()


def test_a_half_made_folder_is_taken_over(tmp_path):
    run = make_folder(tmp_path / "run", "seed = 1\n")
    make_folder(run, "seed = 2\n")
    EventLog.create(run, STARTED).close()
    assert (run / "run.toml").read_text() == "seed = 2\n"


def test_a_folder_that_holds_a_run_is_not_made_again(tmp_path):
    EventLog.create(tmp_path / "run", STARTED).close()
    for make in (make_folder, EventLog.create):
        with pytest.raises(RunError, match=r"already holds a run: `kernel-evo resume"):
            make(tmp_path / "run")


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(
        RunError, match=r"holds other files .'thesis.tex'.: name an empty folder or a new one"
    ):
        make_folder(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    for attempt in (
        lambda: make_folder(tmp_path / "file" / "run"),
        lambda: claim_folder("x", TODAY, tmp_path / "file"),
    ):
        with pytest.raises(
            RunError, match=r"cannot make the run folder .*file/.*; name a folder you can write to"
        ):
            attempt()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable to root")
def test_an_unwritable_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunError, match=r"cannot make the run folder .*: Permission denied"):
        make_folder(tmp_path / "run")
    tmp_path.chmod(0o700)


def test_a_path_without_a_run_is_refused_with_what_it_is_instead(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name, complaint in {
        "none": "no run at",
        "file": "is a file, not a run",
        "folder": "has no run.db",
    }.items():
        with pytest.raises(RunError, match=complaint):
            require_run(tmp_path / name)


def test_a_lock_is_free_again_after_release(tmp_path):
    first = FolderLock(tmp_path)
    with pytest.raises(RunError, match="in use by process"):
        FolderLock(tmp_path, patience=0.05)
    first.release()
    first.release()
    FolderLock(tmp_path, patience=0.0).release()
