"""A run in two halves: one proposes with models and no device, one judges with a device and no model."""

# ruff: noqa: ARG001, ARG002, ARG005 -- stand-ins take what the seam hands them
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chat_server import Body, serving
from test_evo_agents import KEY, HoldsOut, Parts, author, events, kernel, made_by, nothing, speak
from test_evo_kill import Launch, launch  # noqa: F401 -- a fixture

import evo
import populations
from evo import inbox, session
from evo.command import run_command_line
from evo.course import TUNE
from evo.errands import PROBE
from evo.folded import replayed
from evo.ledger import Caps
from evo.parcels import LARGEST, Parcel, listed
from evo.progress import Silent
from evo.proposing import Told, propose
from evo.settings import checked
from fitness.target import Built, DeviceError
from operators.agents.models import ModelSettings
from populations import EventLog, Outcome, Verdict
from populations.events import Certainty, Judged, Proposed, Reserved, Settled, Stillborn
from populations.folder import PROPOSALS, FolderLock, RunError

HERE = __name__
FIRST = kernel("FIRST")
BUSY: list[str] = []  # what the device was asked for


class Here(Parts):
    """A device of the judging machine alone."""

    def __init__(self, *arguments: Any, **further: Any) -> None:
        if os.environ.get("NO_DEVICE"):
            raise DeviceError("this machine has no device")
        super().__init__()

    def screen(self, built: Built) -> Verdict:
        BUSY.append(built.kernel.source)
        return super().screen(built)


class Beside(Here):
    """The same, where builds disturb no measuring."""

    separate = True


def begun(folder: Path, target: str = "Here", **more: Any) -> Path:
    """A run that has judged one kernel, with a snapshot."""
    seed = folder / "seed.cpp"
    seed.write_text(FIRST)
    path = folder / "run"
    more = {"evaluations": 1, "toolbox": nothing(), **more}
    evo.search("instant", f"{HERE}:{target}", run_dir=path, seeds=[seed], **more).close()
    assert not judge(path)
    return path


def judge(path: Path) -> bool:
    return session.judge(path, Silent(), nothing())


def ask(path: Path, wanted: int, *models: ModelSettings, **more: Any) -> Told:
    return propose(path, wanted, lambda line: None, models, **more)


def ends(path: Path) -> dict[str, Any]:
    """How the ask of each proposal ended, by its call; none ended twice."""
    with populations.open(path) as run:
        found = [each for each in events(run, Proposed, Stillborn) if each.call is not None]
    assert len({each.call for each in found}) == len(found)
    return {each.call: each for each in found}


@pytest.mark.parametrize("target", ["Here", "Beside"])
def test_what_one_half_proposes_the_other_judges_until_the_best_of_two_is_crossed(
    tmp_path: Path, target: str
) -> None:
    path = begun(tmp_path, target)
    with serving(author) as server:
        for turn in range(20):
            ask(path, 3, speak(server), name=f"turn{turn}")
            assert judge(path)
            with populations.open(path) as run:
                if run.best is not None and run.best.operator == "agent_cross":
                    break
        read, written = server.read, server.written
    with populations.open(path) as run:
        assert run.status()["stopped"] == "proposals"
        repaired = made_by(run, "agent_repair")[0]
        assert run.get(repaired.parents[0]).status is Outcome.INCORRECT
        assert run.best is not None and "FAST" in run.best.source and "LEAN" in run.best.source
        assert run.best.operator == "agent_cross"
        assert run.ledger()["tokens"] == read + written
        assert {each.certainty for each in events(run, Settled)} == {Certainty.COUNTED}
        assert len([each for each in events(run, Reserved) if each.operator == PROBE]) == turn + 1
    assert populations.check(path) == []


def test_without_a_model_operators_propose(tmp_path: Path) -> None:
    path = tmp_path / "run"
    evo.search("softmax", f"{HERE}:Here", evaluations=4, run_dir=path).close()
    judge(path)
    told = propose(path, 6, lambda line: None)
    assert (len(told.ids), told.without, told.stopped) == (6, 0, None)
    session.judge(path, Silent())
    ended = ends(path)
    assert set(ended) == {f"{id}.1" for id in told.ids}
    assert all(each.parents and each.model is None for each in ended.values())
    assert [each for each in ended.values() if isinstance(each, Proposed)]
    assert populations.check(path) == []


def test_a_step_of_tuning_that_two_took_at_once_ends_no_tuning(tmp_path: Path) -> None:
    path = tmp_path / "run"
    evo.search("softmax", f"{HERE}:Here", evaluations=2, run_dir=path).close()
    judge(path)
    with EventLog.open(path) as log:
        settings = checked(log.started().settings["search"], "the run")
        _, course = replayed(log, settings)
        (root, *_), due = course.due, dict(course.due)
        assert due[root] == settings.tune_evaluations
        course.apply(Stillborn(3, TUNE, (root,), "a duplicate of an earlier kernel", call="two-0001.1"))
        assert course.due == due
        course.apply(Stillborn(4, TUNE, (root,), "no other numbers to try"))
        assert root not in course.due


def test_the_half_that_proposes_needs_a_snapshot_and_neither_the_run_nor_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, elsewhere = begun(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(path / "snapshot.db", elsewhere)
    monkeypatch.setenv("NO_DEVICE", "1")
    with serving(author) as server:
        told = ask(elsewhere, 2, speak(server))
    assert sorted(entry.name for entry in elsewhere.iterdir()) == [PROPOSALS, "snapshot.db"]
    monkeypatch.delenv("NO_DEVICE")
    shutil.copytree(elsewhere / PROPOSALS, path / PROPOSALS)
    assert judge(path)
    assert set(ends(path)) == {f"{id}.1" for id in told.ids}


def test_a_snapshot_is_one_plain_file_that_stays_while_the_run_goes_on(tmp_path: Path) -> None:
    path = begun(tmp_path)
    before = (path / "snapshot.db").read_bytes()
    assert before[18:20] == b"\x01\x01"  # no write-ahead log belongs to it
    with serving(author) as server:
        ask(path, 1, speak(server))
        assert (path / "snapshot.db").read_bytes() == before
    judge(path)
    assert (path / "snapshot.db").read_bytes() != before
    assert not list(path.glob("snapshot.db?*"))


def test_a_proposal_from_an_old_snapshot_is_judged_for_its_parents_are_still_there(tmp_path: Path) -> None:
    path = begun(tmp_path)
    old = (path / "snapshot.db").read_bytes()
    with serving(author) as server:
        ask(path, 2, speak(server))
        judge(path)
        (path / "snapshot.db").write_bytes(old)
        told = ask(path, 1, speak(server), name="late")
    assert judge(path)
    assert ends(path)[f"{told.ids[0]}.1"].parents in ((), (1,))
    assert populations.check(path) == []


def test_a_judge_goes_on_with_starting_kernels_that_were_left(tmp_path: Path) -> None:
    path = tmp_path / "run"
    evo.search("softmax", f"{HERE}:Here", evaluations=1, run_dir=path).close()
    assert judge(path)
    with populations.open(path) as run:
        assert [member.operator for member in run.individuals()] == ["seed", "seed"]
    assert not judge(path)


def test_the_problem_goes_with_the_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "run"
    problem = Path(evo.__file__).parent.parent / "fitness" / "problems" / "softmax.py"
    seed = tmp_path / "seed.cpp"
    seed.write_text(FIRST)
    where: dict[str, Any] = {"run_dir": path, "seeds": [seed], "toolbox": nothing()}
    evo.search("softmax", f"{HERE}:OfSoftmax", evaluations=1, **where).close()
    judge(path)
    assert (path / "problem.py").read_text() == problem.read_text()
    with serving(author) as server:
        ask(path, 1, speak(server))
        asked = server.requests[-1][1]["messages"][-1]["content"]
    assert "class Model" in asked and "def get_cases" not in asked


class OfSoftmax(Here):
    """Its card names a real file."""

    def __init__(self, *arguments: Any, **further: Any) -> None:
        super().__init__()
        from populations.kernel import source_sha

        path = Path(evo.__file__).parent.parent / "fitness" / "problems" / "softmax.py"
        self._card = replace(self._card, path=str(path), sha=source_sha(path.read_text()))


def test_two_that_propose_at_once_share_no_name_and_stay_within_the_runs_cap(tmp_path: Path) -> None:
    path = begun(tmp_path, tokens=20_000)

    def slow(body: Body) -> str:
        time.sleep(0.05)
        return author(body)

    told: list[Told] = []
    with serving(slow) as server:
        model = speak(server)
        both = [threading.Thread(target=lambda: told.append(ask(path, 9, model))) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        names = [name for each in told for name in each.ids]
        assert len(set(names)) == len(names) > 0
        assert any("cap in tokens" in (each.stopped or "") for each in told)
        assert server.read + server.written <= 20_000
    judge(path)
    with populations.open(path) as run:
        assert run.ledger()["tokens"] == server.read + server.written
    assert set(ends(path)) == {f"{name}.1" for name in names}
    with serving(author) as server:
        for _ in range(8):
            last = ask(path, 9, model := speak(server))
            judge(path)
        assert not last.ids and "cap in tokens" in (last.stopped or "")
    with populations.open(path) as run:
        assert run.ledger()["tokens"] <= 20_000


def test_a_cap_of_its_own_ends_one_propose_and_not_the_next(tmp_path: Path) -> None:
    path = begun(tmp_path)
    with serving(author) as server:
        told = ask(path, 9, speak(server), caps=Caps(tokens=12_000))
        assert 0 < len(told.ids) < 9 and told.stopped == "--tokens has no room for another request"
        assert told.spent.tokens <= 12_000
        assert len(ask(path, 1, speak(server)).ids) == 1


def test_a_request_that_was_open_at_a_kill_is_charged_once_and_its_late_answer_is_used(
    tmp_path: Path,
) -> None:
    path = begun(tmp_path)
    with serving(author) as server:
        told = ask(path, 1, speak(server), name="gone")
    whole = path / PROPOSALS / f"{told.ids[0]}.json"
    held = json.loads(whole.read_text())
    whole.unlink()
    open_ = {**held, "source": None, "rationale": "", "answer": None, "certainty": "unknown"}
    open_ |= {"tokens": held["reserved_tokens"], "usd": held["reserved_usd"], "seconds": 0.0}
    announced = path / PROPOSALS / f"{told.ids[0]}.asked.json"
    announced.write_text(json.dumps(open_))
    lock = FolderLock(path / PROPOSALS, name="gone.lock")
    judge(path)  # it takes the probe
    with populations.open(path) as run:
        assert not [each for each in events(run, Settled) if each.certainty is Certainty.UNKNOWN]
    lock.release()
    for _ in range(2):
        judge(path)
    whole.write_text(json.dumps(held))
    for _ in range(2):
        judge(path)
    with populations.open(path) as run:
        settled = [each for each in events(run, Settled) if each.call == f"{told.ids[0]}.1"]
        assert [(each.certainty, each.tokens) for each in settled] == [
            (Certainty.UNKNOWN, held["reserved_tokens"])
        ]
        assert run.evaluations == 2
    assert isinstance(ends(path)[f"{told.ids[0]}.1"], Proposed)
    assert populations.check(path) == []


def changed(**more: Any) -> Callable[[Path, dict[str, Any]], None]:
    return lambda path, held: path.write_text(json.dumps({**held, **more})) and None


def text(content: str) -> Callable[[Path, dict[str, Any]], None]:
    return lambda path, held: path.write_text(content) and None


def linked(path: Path, held: dict[str, Any]) -> None:
    elsewhere = path.with_suffix(".real")
    elsewhere.write_text(json.dumps(held))
    path.symlink_to(elsewhere)


def large(path: Path, held: dict[str, Any]) -> None:
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)


def digits(path: Path, held: dict[str, Any]) -> None:
    message = '[{"role": "user", "text": "x", "more": ' + "9" * 5000 + "}]"
    asked = {**held["asked"], "messages": "HERE"}
    path.write_text(json.dumps({**held, "asked": asked}).replace('"HERE"', message))


def deep(path: Path, held: dict[str, Any]) -> None:
    path.write_text(json.dumps(held)[:-1] + ', "deep": ' + "[" * 100_000 + "]" * 100_000 + "}")


DAMAGED: dict[str, tuple[Callable[[Path, dict[str, Any]], Any], str]] = {
    "empty": (text(""), "EOF"),
    "cut": (lambda path, held: path.write_text(json.dumps(held)[:200]), "EOF"),
    "no text": (lambda path, held: path.write_bytes(b"\xff\xfe\x00"), "JSON"),
    "another kind": (text('["a", "list"]'), "object"),
    "later": (changed(format=2), "format"),
    "deep": (deep, "recursion"),
    "digits": (digits, "out of range"),
    "large": (large, "MiB"),
    "link": (linked, "a link"),
    "pipe": (lambda path, held: os.mkfifo(path), "no plain file"),
    "folder": (lambda path, held: path.mkdir(), "directory"),
    "another run": (changed(run="0" * 64), "another run"),
    "another name": (changed(id="bad-0002"), "another proposal"),
    "path": (changed(id="../../bad-0001"), "another proposal"),
    "no such parent": (changed(operator="agent_mutate", parents=[[77, "0" * 64]]), "kernel 77"),
    "another parent": (changed(operator="agent_mutate", parents=[[1, "0" * 64]]), "kernel 1"),
    "no parent": (changed(operator="agent_repair", parents=[]), "takes 0 parents"),
    "seed": (changed(operator="seed", model=None), "without a model"),
    "orphan": (changed(operator="unroll", model=None, parents=[]), "from 0 others"),
    "debt": (changed(tokens=-5), "greater than"),
    "endless": (changed(usd=float("nan")), "usd"),
    "long": (changed(source="x" * (1 << 21)), "at most"),
    "language": (changed(language="triton"), "triton"),
    "operator": (changed(operator="a b\nc"), "pattern"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run, and a proposal for it as it should be."""
    path = begun(tmp_path_factory.mktemp("halves"))
    with serving(author) as server:
        told = ask(path, 1, speak(server), name="bad")
    held = json.loads((path / PROPOSALS / f"{told.ids[0]}.json").read_text())
    shutil.rmtree(path / PROPOSALS)
    return path, {**held, "id": "bad-0001"}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_file_that_holds_no_proposal_is_a_still_birth_and_one_line(
    how: str, judged: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    shutil.copytree(judged[0], path)
    (path / PROPOSALS).mkdir()
    damage, why = DAMAGED[how]
    damage(path / PROPOSALS / "bad-0001.json", judged[1])
    assert run_command_line(["judge", str(path)]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "bad-0001" in line]
    assert line.startswith("proposals/bad-0001.json: ") and why in line and "still-birth" in line
    ended = ends(path)["bad-0001.1"]
    assert isinstance(ended, Stillborn) and ended.operator == "unread"
    assert populations.check(path) == []
    assert run_command_line(["judge", str(path)]) == 0
    assert "nothing to judge" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["empty", "large", "link", "pipe", "another run", "no parent"])
def test_a_request_that_cannot_be_read_costs_nothing_and_is_told_of(
    how: str, judged: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    shutil.copytree(judged[0], path)
    (path / PROPOSALS).mkdir()
    DAMAGED[how][0](path / PROPOSALS / "bad-0001.asked.json", judged[1])
    assert run_command_line(["judge", str(path)]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in told] == [
        "proposals/bad-0001.asked.json", told[1],
    ]  # fmt: skip
    assert "nothing to judge" in told[1]
    assert ends(path) == {}


def test_numbers_that_no_tuner_moved_are_no_tuning(tmp_path: Path) -> None:
    path = tmp_path / "run"
    evo.search("softmax", f"{HERE}:Here", evaluations=4, run_dir=path).close()
    judge(path)
    (id,) = propose(path, 1, lambda line: None).ids
    file = path / PROPOSALS / f"{id}.json"
    held = json.loads(file.read_text())
    held |= {"operator": "tune", "parents": held["parents"][:1], "source": FIRST}
    file.write_text(json.dumps(held))
    session.judge(path, Silent())
    assert "with other numbers" in ends(path)[f"{id}.1"].reason
    session.resume(path, Silent())
    assert populations.check(path) == []


def test_records_of_a_proposal_are_kept_under_the_name_of_its_call_whatever_they_say(
    judged: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, held = tmp_path / "run", judged[1]
    shutil.copytree(judged[0], path)
    (path / PROPOSALS).mkdir()
    for part in ("asked", "answer"):
        held = {**held, part: {**held[part], "call": "../../outside"}}
    (path / PROPOSALS / "bad-0001.json").write_text(json.dumps(held))
    judge(path)
    assert sorted(file.name for file in (path / "calls").iterdir()) == [
        "bad-0001.1.answer.json", "bad-0001.1.asked.json",
    ]  # fmt: skip
    assert isinstance(ends(path)["bad-0001.1"], Proposed)
    assert populations.check(path) == []


def test_a_folder_of_proposals_that_is_a_link_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, elsewhere = begun(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (path / PROPOSALS).symlink_to(elsewhere)
    for command in (["judge", str(path)], ["propose", str(path)]):
        capsys.readouterr()
        assert run_command_line(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "no link" in line


def test_a_judge_with_nothing_to_do_says_so_and_opens_no_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begun(tmp_path)
    monkeypatch.setenv("NO_DEVICE", "1")
    capsys.readouterr()
    assert run_command_line(["judge", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and "nothing to judge" in said.err
    assert run_command_line(["judge", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["evaluations"] == 1


def test_a_judge_waits_for_no_run_that_holds_the_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = begun(tmp_path)
    lock = FolderLock(path)
    capsys.readouterr()
    assert run_command_line(["judge", str(path)]) == 2
    lock.release()
    (line,) = capsys.readouterr().err.splitlines()
    assert "in use by process" in line


def test_what_a_user_has_to_mend_before_proposing_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = begun(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    damaged = tmp_path / "damaged"
    shutil.copytree(path, damaged)
    (damaged / "snapshot.db").write_bytes(b"SQLite format 3\0" + bytes(5000))
    unpriced = ["--model", "small@http://127.0.0.1:9/v1"]
    for command, why in (
        ([str(empty)], "no snapshot"),
        ([str(tmp_path / "nowhere")], "no snapshot"),
        ([str(damaged)], "snapshot.db"),
        ([str(path), "--model", "gpt-5"], "OPENAI_API_KEY"),
        ([str(path), *unpriced], "is the server running?"),
        ([str(path), *unpriced, "--usd", "1"], "has no price"),
        ([str(path), "--tokens", "0"], "tokens = 0"),
        ([str(path), "-n", "0"], "'-n'"),
    ):
        capsys.readouterr()
        assert run_command_line(["propose", *command]) == 2, command
        (line,) = capsys.readouterr().err.splitlines()
        assert why in line
    assert listed(path / PROPOSALS) == ([], [])


def test_the_models_of_a_run_are_asked_by_the_one_half_and_not_by_the_other(tmp_path: Path) -> None:
    with serving(author) as server:
        path = begun(tmp_path, models=[speak(server)])
        before = len(server.requests)
        told = ask(path, 2)
        assert len(server.requests) == before + 3
    assert judge(path)
    assert set(ends(path)) >= {f"{id}.1" for id in told.ids}


def test_a_judge_takes_no_more_than_so_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = begun(tmp_path)
    with serving(author) as server:
        told = ask(path, 3, speak(server))
    monkeypatch.setattr(inbox, "AT_ONCE", 2)
    taken = []
    while judge(path):
        taken.append(len(ends(path)))
    assert taken == [1, 3]  # the first takes the probe
    assert len(told.ids) == 3


def test_a_key_is_needed_to_propose_and_stays_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begun(tmp_path)
    monkeypatch.setenv("SMALL_KEY", KEY)
    config = tmp_path / "settings.toml"
    with serving(author, faults=["slow", "echo"]) as server:
        table = f'[[models]]\nname = "small"\nurl = "{server.url}"\nkey_env = "SMALL_KEY"\n'
        config.write_text(table)
        assert run_command_line(["propose", str(path), "-n", "3", "--config", str(config), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["proposals"]) == 3 and told["without"] >= 1 and told["spent"]["tokens"] > 0
    monkeypatch.delenv("SMALL_KEY")
    assert run_command_line(["judge", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["tokens"] == told["spent"]["tokens"]
    written = [file for file in path.rglob("*") if file.is_file()]
    assert not [file for file in written if KEY.encode() in file.read_bytes()]


def test_a_model_that_fails_costs_proposals_and_is_left_alone(tmp_path: Path) -> None:
    path = begun(tmp_path)
    with serving(author, faults=["slow", *["broken"] * 60]) as server:
        model = speak(server, retries=0, parallel=2)
        told = ask(path, 40, model)
        assert "small is asked no more" in (told.stopped or "")
        assert told.without == len(told.ids) < 40
        server.faults = []
        assert ask(path, 1, model).without == 0
    judge(path)
    with populations.open(path) as run:
        failed = [each for each in events(run, Stillborn) if each.call is not None]
        assert len([each for each in failed if "small" in each.reason]) == len(told.ids)
        assert sum(row["failed"] for row in run.calls()) == len(told.ids)
    assert populations.check(path) == []


def test_a_judge_that_is_killed_between_what_an_answer_cost_and_its_ask_goes_on_there(
    tmp_path: Path,
) -> None:
    path = begun(tmp_path)
    with serving(author) as server:
        ask(path, 1, speak(server), name="one")

    class Impatient(Silent):
        """Ends the process once the answer is logged and before its ask."""

        def told(self, event: Any, state: Any) -> None:
            if isinstance(event, Settled) and state.evaluations == 1 and event.call != "one-0001.1":
                raise Killed

    class Killed(BaseException):
        """As a kill would: nothing more is logged."""

    with pytest.raises(Killed):
        session.judge(path, Impatient(), nothing())
    assert ends(path) == {}
    assert judge(path)
    assert list(ends(path)) == ["one-0002.1"]
    with populations.open(path) as run:
        assert len(events(run, Settled)) == 2
    assert populations.check(path) == []


def test_killing_either_half_at_any_moment_loses_no_proposal_and_doubles_none(
    tmp_path: Path,
    launch: Launch,  # noqa: F811
) -> None:
    rng, path = Random(11), tmp_path / "run"
    where = ["--target", "fitness.testing:InstantTarget", "--run-dir", str(path)]

    def answer(body: Body) -> str:
        time.sleep(0.03)
        return author(body).replace("static int ", f"static int n{rng.getrandbits(60)}, ")

    with serving(answer) as server:
        assert launch(["run", "softmax", *where, "--evaluations", "3", "--json"], None) == 0
        assert launch(["judge", str(path)], None) == 0
        words = ["propose", str(path), "-n", "400", "--model", f"small@{server.url}"]
        proposals = path / PROPOSALS
        killed = turns = 0
        while turns < 8 or (turns < 60 and not (killed and all(listed(proposals)))):
            turns += 1
            assert launch(words, rng.uniform(0.2, 0.9)) == -signal.SIGKILL
            killed += launch(["judge", str(path)], rng.uniform(0.02, 0.25)) == -signal.SIGKILL
        assert launch(["judge", str(path)], None) == 0
        ended, open_ = listed(proposals)
        sent = len(server.requests)
    assert killed and ended and open_
    parcels = {id: json.loads((proposals / f"{id}.json").read_text()) for id in ended}
    children = {f"{id}.1" for id, held in parcels.items() if held["operator"] != PROBE}
    assert set(ends(path)) == children
    with populations.open(path) as run:
        reserved = {each.call: each for each in events(run, Reserved)}
        settled = events(run, Settled)
        judged = [each.id for each in events(run, Judged)]
    assert len({each.call for each in settled}) == len(settled) == len(reserved)
    unknown = {each.call for each in settled if each.certainty is Certainty.UNKNOWN}
    assert unknown == {f"{id}.1" for id in open_}
    assert all(each.tokens == reserved[each.call].tokens for each in settled if each.call in unknown)
    assert sent <= len(reserved) + turns  # of a probe that a kill met nobody knows
    assert len(set(judged)) == len(judged)
    assert populations.check(path) == []


def test_an_interrupted_propose_says_what_is_there_and_what_counts_as_spent(tmp_path: Path) -> None:
    path, answered = begun(tmp_path), iter([True])

    def answer(body: Body) -> str:
        if "# Your task" in body["messages"][-1]["content"] and not next(answered, False):
            server.stop.wait(30)
        return author(body)

    with serving(answer) as server:
        words = ["-m", "evo", "propose", str(path), "--model", f"small@{server.url}"]
        with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as half:
            # The probe's and one more; four are open at a time.
            while [len(ids) for ids in listed(path / PROPOSALS)] != [2, 4]:
                assert half.poll() is None
                time.sleep(0.01)
            judge(path)  # those that are open are waited for
            with populations.open(path) as run:
                assert {each.certainty for each in events(run, Settled)} == {Certainty.COUNTED}
            half.send_signal(signal.SIGINT)
            _, said = half.communicate()
        assert half.returncode == 130
        assert "interrupted; what was made is in" in said.splitlines()[-1]
        ended, open_ = listed(path / PROPOSALS)
        assert len(open_) == 4 and not list((path / PROPOSALS).glob("*.lock"))
    judge(path)
    with populations.open(path) as run:
        settled = {each.call: each.certainty for each in events(run, Settled)}
    assert {call for call, sure in settled.items() if sure is Certainty.UNKNOWN} == {
        f"{id}.1" for id in open_
    }
    assert len(settled) == len(ended) + 4
    assert populations.check(path) == []


def test_no_prompt_of_the_half_that_proposes_tells_of_a_case_that_is_held_out(tmp_path: Path) -> None:
    path = begun(tmp_path, "Hides")
    with serving(author) as server:
        for turn in range(4):
            ask(path, 4, speak(server), name=f"turn{turn}")
            judge(path)
        asked = [body["messages"][-1]["content"] for _, body in server.requests]
    assert [text for text in asked if "a held-out case failed" in text]
    assert not [text for text in asked if "nonfinite" in text or "0.25" in text]


class Hides(HoldsOut):
    """Named here."""


def test_a_parcel_says_what_the_ledger_needs(tmp_path: Path) -> None:
    path = begun(tmp_path)
    with serving(author) as server:
        (id,) = ask(path, 1, speak(server)).ids
    held = json.loads((path / PROPOSALS / f"{id}.json").read_text())
    assert set(held) == set(Parcel.__dataclass_fields__)
    assert (held["model"], held["certainty"]) == ("small", "counted")
    assert held["operator"] in ("agent_draft", "agent_mutate")
    assert held["tokens"] == sum(
        held["answer"]["answer"]["spent"][way] for way in ("tokens_in", "tokens_out")
    )
    assert 0 < held["usd"] <= held["reserved_usd"] and held["seconds"] > 0
    assert "Your task" in held["asked"]["messages"][-1]["text"] and held["rationale"]


def test_a_snapshot_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no snapshot"):
        propose(tmp_path, 1, lambda line: None)
