"""The event log: what it stores, who may use it at the same time, and how it fails."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from populations.events import FORMAT, Judged, Stillborn
from populations.folder import RunError, writer_of
from populations.kernel import Kernel
from populations.log import EventLog, Store
from populations.testing import STARTED, StoreContract, a_kernel, a_life, a_measurement, a_proposal

KERNELS = [a_kernel(1), a_kernel(2)]


class TestEventLogIsAStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        opened: list[EventLog] = []

        def open_store() -> Store:
            opened.append(EventLog.open(tmp_path / "run") if opened else EventLog.create(tmp_path / "run"))
            return opened[-1]

        yield open_store
        for log in opened:
            log.close()


@pytest.fixture
def run(tmp_path) -> Path:
    """The folder of a small finished run."""
    with EventLog.create(tmp_path / "run") as log:
        log.append(*a_life(), kernels=KERNELS)
    return tmp_path / "run"


def test_a_log_comes_into_being_with_its_first_event(tmp_path):
    with EventLog.create(tmp_path / "run", STARTED) as log:
        assert [record.event for record in log.records()] == [STARTED]


def test_a_run_that_died_while_being_made_can_be_made_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.db.new").write_bytes(b"half a database")
    with EventLog.create(tmp_path / "run", STARTED) as log:
        assert len(list(log.records())) == 1
    assert not list((tmp_path / "run").glob("run.db.new*"))


def test_the_clock_is_an_argument(tmp_path):
    with EventLog.create(tmp_path / "run", clock=lambda: 42.0) as log:
        log.append(STARTED)
        assert next(log.records()).time == 42.0


def test_a_source_comes_back_to_the_letter(tmp_path):
    odd = Kernel('// naïve ∞ \0 \r\n\ttab "quote"\n', "cpp")
    with EventLog.create(tmp_path / "run") as log:
        log.append(kernels=[odd])
        assert log.source(odd.sha) == odd.source


def test_stored_events_cannot_be_changed_or_removed(run):
    with EventLog.open(run) as log:
        for statement in ("UPDATE events SET time = 0", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="events never"):
                log.db.execute(statement)


def test_a_reader_follows_a_writer(run):
    with EventLog.open(run) as writer, EventLog.open(run, readonly=True) as reader:
        before = list(reader.records())
        writer.append(Stillborn(3, "unroll", (), "no loop"))
        assert [record.seq for record in reader.records(since=len(before))] == [8]


def test_a_reader_in_the_middle_of_a_long_log_does_not_hold_the_writer_up(run):
    with EventLog.open(run) as writer, EventLog.open(run, readonly=True) as reader:
        writer.append(*(Stillborn(ask, "unroll", (), "no loop") for ask in range(3, 603)))
        records = reader.records()
        next(records)
        writer.append(Stillborn(603, "unroll", (), "no loop"))
        ((busy, left, done),) = writer.query("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (busy, left, done) == (0, 0, 0)
        assert sum(1 for _ in records) == 607


def test_a_reader_cannot_write(run):
    with EventLog.open(run, readonly=True) as log, pytest.raises(RunError, match="opened for reading"):
        log.append(Stillborn(3, "unroll", (), "no loop"))


def test_a_second_writer_is_told_who_is_first(run):
    with EventLog.open(run), pytest.raises(RunError, match=f"in use by process {os.getpid()}"):
        EventLog.open(run)


def test_a_second_process_is_told_too(run):
    script = f"""
import populations
try:
    populations.EventLog.open({str(run)!r})
except populations.RunError as why:
    print(why)
"""
    with EventLog.open(run):
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == f"run {run} is in use by process {os.getpid()}: wait for it, or stop it first\n"


def test_the_writer_is_known_while_it_writes(run):
    with EventLog.open(run):
        assert writer_of(run) == os.getpid()
    assert writer_of(run) is None


def test_a_log_that_nobody_closed_lets_go_when_its_last_name_goes(run):
    log = EventLog.open(run)
    del log
    EventLog.open(run).close()


def test_a_newer_format_is_refused(run):
    db = sqlite3.connect(run / "run.db")
    db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    db.close()
    for readonly in (True, False):
        with pytest.raises(RunError, match="install a newer kernel-evo"):
            EventLog.open(run, readonly=readonly)


def test_a_database_that_another_program_has_locked_is_named(run):
    with EventLog.open(run, patience=0.01) as log:
        other = sqlite3.connect(run / "run.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunError, match=r"run\.db: database is locked; another program has locked it"):
            log.append(Stillborn(3, "unroll", (), "no loop"))
        other.execute("ROLLBACK")
        other.close()
        assert log.append(Stillborn(3, "unroll", (), "no loop")) == 8


@pytest.mark.parametrize("readonly", [True, False])
def test_a_file_that_is_no_database_is_named(tmp_path, readonly):
    (tmp_path / "run.db").write_text("certainly not a database, but long enough to have a header\n" * 100)
    with pytest.raises(RunError, match=r"run\.db: file is not a database; this file is not a run's log"):
        EventLog.open(tmp_path, readonly=readonly)


def test_an_empty_database_was_never_made_to_the_end(tmp_path):
    (tmp_path / "run.db").touch()
    with pytest.raises(RunError, match="never made to the end"):
        EventLog.open(tmp_path)


def test_an_event_of_an_unknown_kind_is_named_by_its_number(run):
    db = sqlite3.connect(run / "run.db")
    db.execute("INSERT INTO events VALUES (8, 0.0, 'promised', '{}')")
    db.commit()
    db.close()
    with EventLog.open(run, readonly=True) as log, pytest.raises(RunError, match=r"event 8 .* 'promised'"):
        list(log.records())


def test_a_missing_source_is_named(run):
    with EventLog.open(run, readonly=True) as log, pytest.raises(RunError, match="holds no source abc"):
        log.source("abc")


def test_a_missing_kernel_is_named(run):
    with EventLog.open(run, readonly=True) as log, pytest.raises(RunError, match="has no kernel 99"):
        log.proposed(99)


def test_a_refused_event_leaves_the_log_as_it_was(run):
    with EventLog.open(run) as log:
        with pytest.raises(ValueError, match="never proposed"):
            log.append(a_proposal(3), Judged(9, a_measurement(0.1)), kernels=[a_kernel(3)])
        assert len(list(log.records())) == 7
        with pytest.raises(RunError):
            log.source(a_kernel(3).sha)


def test_what_a_killed_writer_left_beside_the_database_is_read(run, tmp_path):
    with EventLog.open(run) as log:
        log.append(Stillborn(3, "unroll", (), "no loop"))
        shutil.copytree(run, tmp_path / "copy")
    with EventLog.open(tmp_path / "copy", readonly=True) as log:
        assert len(list(log.records())) == 8
