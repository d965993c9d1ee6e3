"""A run that is killed at random moments, on the device that answers at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from chat_server import Body, serving
from test_evo_agents import author

import populations
from populations.events import Certainty, Judged, Proposed, Reserved, Settled, Stillborn

INSTANT = "fitness.testing:InstantTarget"
KILLS = 45
EVALUATIONS = 250
Launch = Callable[[list[str], float | None], int]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Runs the command line; kills it after so many seconds, if told; the exit status."""
    script = Path(__file__).with_name("evo_killing.py")
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"PYTHONPATH": str(script.parent.parent), "PATH": "/usr/bin:/bin"},
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        requests, answers = server.stdin, server.stdout

        def ask(arguments: list[str], kill_after: float | None) -> int:
            requests.write(json.dumps({"arguments": arguments, "kill_after": kill_after}) + "\n")
            requests.flush()
            return int(answers.readline())

        yield ask
        requests.close()


def begin(path: Path, target: str = INSTANT, budget: int = EVALUATIONS) -> list[str]:
    where = ["--target", target, "--run-dir", str(path)]
    return ["run", "softmax", *where, "--evaluations", str(budget), "--json"]


def resume(path: Path) -> list[str]:
    return ["resume", str(path), "--json"]


def endings(path: Path) -> list[tuple[int, int | None, str]]:
    """How every ask ended."""
    with populations.open(path) as run:
        events = [record.event for record in run.log.records()]
    return [
        (e.ask, e.id, e.source_sha) if isinstance(e, Proposed) else (e.ask, None, e.reason)
        for e in events
        if isinstance(e, Proposed | Stillborn)
    ]


def evaluations(path: Path) -> int:
    if not (path / "run.db").exists():
        return 0
    with populations.open(path) as run:
        return run.evaluations


def killed_to_its_end(path: Path, launch: Launch, rng: Random, kills: int, target: str = INSTANT) -> int:
    """Run, kill and resume, at most so many times, then to the end; how often it was killed."""
    start = begin(path, target)
    done = seen = 0
    while done < kills:
        arguments = resume(path) if (path / "run.db").exists() else start
        status = launch(arguments, rng.uniform(0.0, 0.4))
        assert evaluations(path) >= seen, "a verdict was lost"
        seen = evaluations(path)
        if status == 0:
            return done
        assert status == -signal.SIGKILL
        done += 1
    assert launch(resume(path) if (path / "run.db").exists() else start, None) == 0
    return done


def test_killing_runs_at_45_random_moments_loses_and_doubles_nothing(tmp_path: Path, launch: Launch) -> None:
    undisturbed, rng = tmp_path / "undisturbed", Random(45)
    kills, paths = 0, list[Path]()
    assert launch(begin(undisturbed), None) == 0

    while kills < KILLS:
        paths.append(tmp_path / f"killed-{len(paths)}")
        kills += killed_to_its_end(paths[-1], launch, rng, KILLS - kills)

    for path in paths:
        assert populations.check(path) == []
        with populations.open(path) as run:
            ids = [member.id for member in run.individuals()]
            judged = [record.event.id for record in run.log.records() if isinstance(record.event, Judged)]
        assert ids == list(range(1, EVALUATIONS + 1))
        assert sorted(judged) == ids
        assert endings(path) == endings(undisturbed), "a resumed run asks what it would have asked"


@pytest.mark.slow
def test_killing_a_stream_of_asks_at_15_random_moments_loses_and_doubles_nothing(
    tmp_path: Path, launch: Launch
) -> None:
    kills, path, rng = 0, tmp_path, Random(15)
    while kills < 15:
        path = tmp_path / f"killed-{kills}"
        kills += killed_to_its_end(path, launch, rng, 15 - kills, "evo_killing:Beside")
        assert populations.check(path) == []
        with populations.open(path) as run:
            judged = [record.event.id for record in run.log.records() if isinstance(record.event, Judged)]
        assert judged == list(range(1, EVALUATIONS + 1))


def test_killing_a_run_with_requests_open_uses_every_answer_once_and_asks_again_at_most_once(
    tmp_path: Path, launch: Launch
) -> None:
    rng, path, kills = Random(8), tmp_path / "run", 0

    def answer(body: Body) -> str:
        time.sleep(0.03)
        return author(body)

    with serving(answer) as server:
        words = ["--model", f"small@{server.url}"]
        while not (path / "run.db").exists() or kills < 8:
            arguments = resume(path) if (path / "run.db").exists() else [*begin(path, budget=100_000), *words]
            assert launch(arguments, rng.uniform(0.3, 1.2)) == -signal.SIGKILL
            kills += 1
        sent = len(server.requests)
    with populations.open(path) as run:
        events = [record.event for record in run.log.records()]
    reserved = {each.call: each for each in events if isinstance(each, Reserved)}
    settled = [each for each in events if isinstance(each, Settled)]
    used = [each.call for each in events if isinstance(each, Proposed | Stillborn) and each.call is not None]
    again = [each.again for each in reserved.values() if each.again is not None]
    unknown = {each.call for each in settled if each.certainty is Certainty.UNKNOWN}
    assert populations.check(path) == []
    assert used and len(used) == len(set(used))
    assert again and len(again) == len(set(again)) and set(again) <= unknown
    assert not {each for each in again if reserved[each].again}, "a repetition is not repeated"
    assert not unknown & set(used)
    assert all(each.answer for each in settled if each.call in used)
    # Each was sent once; of the one that the last kill met nobody knows, nor of each launch's probe.
    assert sent <= len(reserved) + kills + 1


@pytest.mark.judge
@pytest.mark.timeout(900)
def test_killing_a_run_on_the_real_judge_five_times_loses_and_doubles_nothing(
    tmp_path: Path, launch: Launch
) -> None:
    path, rng, seen = tmp_path / "killed", Random(5), 0
    for _ in range(5):
        started = (path / "run.db").exists()
        launch(resume(path) if started else begin(path, "cpu", budget=12), rng.uniform(2.0, 40.0))
        time.sleep(1.0)  # the judge dies with the coordinator, but not in no time
        assert evaluations(path) >= seen, "a verdict was lost"
        seen = evaluations(path)
    started = (path / "run.db").exists()
    assert launch(resume(path) if started else begin(path, "cpu", budget=12), None) == 0
    assert populations.check(path) == []
    assert evaluations(path) == 12
