"""A run that is killed at random moments, on the device that answers at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import populations
from populations.events import Judged, Promoted, Proposed, Stillborn

KILLS = 45
EVALUATIONS = 900
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


def begin(path: Path) -> list[str]:
    target = ["--target", "fitness.testing:InstantTarget"]
    return ["run", "softmax", *target, "--evaluations", str(EVALUATIONS), "--run-dir", str(path), "--json"]


def children(path: Path) -> list[tuple[int, int | None, str]]:
    """How every ask ended."""
    with populations.open(path) as run:
        events = [record.event for record in run.log.records()]
    return [
        (e.ask, e.id, e.source_sha) if isinstance(e, Proposed) else (e.ask, None, e.reason)
        for e in events
        if isinstance(e, Proposed | Stillborn)
    ]


def test_killing_a_run_at_45_random_moments_loses_and_doubles_nothing(tmp_path: Path, launch: Launch) -> None:
    path, undisturbed, rng = tmp_path / "killed", tmp_path / "undisturbed", Random(45)
    kills = seen = 0
    while kills < KILLS:
        made = (path / "run.db").exists()
        status = launch(["resume", str(path), "--json"] if made else begin(path), rng.uniform(0.01, 0.25))
        kills += status == -9
        assert status in (-9, 0)
        if (path / "run.db").exists():
            with populations.open(path) as run:
                assert run.evaluations >= seen, "a verdict was lost"
                seen = run.evaluations
    assert launch(["resume", str(path), "--json"], None) == 0
    assert populations.check(path) == []

    with populations.open(path) as run:
        events = [record.event for record in run.log.records()]
        ids = [member.id for member in run.individuals()]
    judged = [event.id for event in events if isinstance(event, Judged)]
    assert ids == list(range(1, EVALUATIONS + 1))
    assert sorted(judged) == ids
    assert any(isinstance(event, Promoted) for event in events)

    assert launch(begin(undisturbed), None) == 0
    assert children(path) == children(undisturbed), "a resumed run asks what it would have asked"
