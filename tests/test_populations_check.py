"""`check` finds every kind of damage that is done to a run here, and says which kernel or event it hit."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from populations import EventLog, RunError, check
from populations.events import FORMAT, Diagnosed, Reflected, Reserved, Resumed, Settled, Stillborn
from populations.testing import a_kernel, a_life, a_proposal


@pytest.fixture
def run(tmp_path) -> Path:
    """Events 1 to 7 are ``a_life``; then a resume, a stillborn ask 3, and kernel 3, which waits."""
    path = tmp_path / "run"
    with EventLog.create(path) as log:
        log.append(*a_life(), kernels=[a_kernel(1), a_kernel(2)])
        log.append(Resumed(2), Stillborn(3, "unroll", (2,), "no loop"))
        log.append(a_proposal(3, ask=4, parents=(1, 2)), kernels=[a_kernel(3)])
    return path


def damage(run: Path, *statements: str) -> list[str]:
    """What ``check`` says after the database was changed behind the log's back."""
    db = sqlite3.connect(run / "run.db", isolation_level=None)
    db.executescript("DROP TRIGGER events_never_change; DROP TRIGGER events_never_go;")
    for statement in statements:
        assert db.execute(statement).rowcount > 0
    db.close()
    return check(run)


def change(seq: int, path: str, value: str) -> str:
    return f"UPDATE events SET body = json_set(body, '$.{path}', {value}) WHERE seq = {seq}"


def test_a_sound_run_has_no_faults(run):
    assert check(run) == []


def test_an_answer_is_read_once_and_after_it_came(run):
    diagnosis, lessons = Diagnosed("1.1", 1, None, "it is empty"), Reflected("2.1", ())
    with EventLog.open(run) as log:
        log.append(Reserved("1.1", 5, "agent_diagnose", "small", 100, parents=(1,)), Settled("1.1", 50))
        log.append(diagnosis)
        assert check(run) == []
        log.append(diagnosis, Reserved("2.1", 5, "agent_reflect", "small", 100), lessons)
    assert check(run) == [
        "Call 1.1 was read twice: events 13 and 14.",
        "Call 2.1 was read (event 16) before it was settled.",
    ]


def test_a_run_that_is_being_written_can_be_checked(run):
    with EventLog.open(run) as log:
        log.append(Stillborn(5, "unroll", (), "no loop"))
        assert check(run) == []


def test_checking_changes_nothing(run):
    before = (run / "run.db").read_bytes()
    check(run)
    assert (run / "run.db").read_bytes() == before


UNSTARTED = "UPDATE events SET kind = 'stopped', body = '{\"why\": \"x\"}' WHERE seq = 1"


@pytest.mark.parametrize(
    "statement, sentence",
    [
        ("DELETE FROM events WHERE seq = 9", "Event 9 is missing: event 10 follows event 8."),
        ("UPDATE events SET body = '{' WHERE seq = 4", "Event 4 (proposed) cannot be read"),
        ("UPDATE events SET kind = 'promised' WHERE seq = 9", "no kind of event called 'promised'"),
        (UNSTARTED, "a run begins with its start"),
        (UNSTARTED, "0 events that start it"),
        (change(4, "ask", "1"), "Ask 1 ended twice: events 2 and 4."),
        (change(4, "ask", "7"), "Ask 2 has no end"),
        (change(9, "ask", "2"), "Ask 2 ended twice: events 4 and 9."),
        (change(10, "id", "5"), "Kernel 3 is missing: kernels up to 5 were proposed."),
        (change(10, "id", "2"), "Kernel 2 was proposed twice: events 4 and 10."),
        (change(10, "parents", "json('[99]')"), "Kernel 3 names kernel 99 as a parent"),
        (change(4, "parents", "json('[2]')"), "Kernel 2 names kernel 2 as a parent"),
        (change(4, "parents", "json('[3]')"), "Kernel 2 names kernel 3 as a parent"),
        (change(10, "normal_sha", f"'{a_kernel(2).sha}'"), "Kernel 3 is a duplicate of kernel 2"),
        (change(10, "source_sha", "'0123456789abcdef'"), "The source of kernel 3 is missing: 0123456789ab."),
        (change(5, "id", "9"), "Kernel 9 was judged (event 5) without having been proposed."),
        ("UPDATE events SET kind = 'judged' WHERE seq = 6", "Kernel 2 was judged twice: events 5 and 6."),
        (change(6, "id", "3"), "Kernel 3 was promoted (event 6) before it was judged."),
        (change(6, "verdict.fitness", "'NaN'"), "Kernel 2 has a fitness that is not a finite number"),
        (change(6, "verdict.rank", "'Infinity'"), "Kernel 2 has a rank that is not a finite number"),
        (change(5, "verdict.cases[1].timings[0].rank", "'NaN'"), "Kernel 2 has a rank of case 256x4096"),
        (change(6, "verdict.rank", "null"), "Kernel 2 is measured and has no rank"),
        (change(3, "verdict.rank", "0.5"), "Kernel 1 is incorrect and has a rank"),
        (change(8, "at_evaluations", "7"), "Event 8 resumes at 7 evaluations, but 2 were judged."),
        (f"DELETE FROM sources WHERE sha = '{a_kernel(3).sha}'", "The source of kernel 3 is missing"),
        ("UPDATE sources SET text = text || ' '", "The source of kernel 1 was changed"),
        ("UPDATE individuals SET rank = 9 WHERE id = 2", "Table individuals is not what the events say"),
        ("UPDATE individuals SET status = NULL WHERE id = 1", "events say about kernel 1."),
        ("DELETE FROM individuals WHERE id = 3", "individuals is not what the events say about kernel 3."),
        ("DELETE FROM cases WHERE position = 1", "Table cases is not what the events say about kernel 2."),
        ("UPDATE cases SET max_error = 0.3", "Table cases is not what the events say about kernel 2."),
        ("INSERT INTO asks VALUES (5, 'unroll', NULL, '')", "asks is not what the events say about ask 5."),
        ("UPDATE asks SET operator = 'x'", "Table asks is not what the events say about ask 4."),
    ],
)  # fmt: skip
def test_damage_is_named(run, statement, sentence):
    assert any(sentence in fault for fault in damage(run, statement))


def test_a_fault_in_many_rows_is_summed_up(run):
    with EventLog.open(run) as log:
        log.append(*(Stillborn(ask, "unroll", (), "no loop") for ask in range(5, 25)))
    faults = damage(run, "UPDATE asks SET operator = 'x'")
    assert len(faults) == 6
    assert faults[-1] == "Table asks is wrong about 19 more."


def test_a_database_page_full_of_rubbish_is_named(run):
    with EventLog.open(run) as log:
        log.append(*(Stillborn(ask, "unroll", (), "no loop" * 100) for ask in range(5, 105)))
    with (run / "run.db").open("r+b") as file:
        file.seek(-3 * 4096, 2)
        file.write(b"\xa5" * 4096)
    assert any("run.db is damaged" in fault for fault in check(run))


def test_a_file_that_is_no_database_is_damaged(run):
    (run / "run.db").write_bytes(b"\xa5" * 9000)
    assert check(run) == ["run.db is damaged: file is not a database."]


def test_settings_that_are_no_toml_are_named(run):
    (run / "run.toml").write_text("seed = = 3\n")
    assert check(run)[0].startswith("run.toml is not valid TOML")


def test_what_cannot_be_checked_is_refused(run, tmp_path):
    with pytest.raises(RunError, match="there is no run at"):
        check(tmp_path / "none")
    db = sqlite3.connect(run / "run.db")
    db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    db.close()
    with pytest.raises(RunError, match="install a newer kernel-evo"):
        check(run)
