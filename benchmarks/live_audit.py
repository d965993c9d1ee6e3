"""What runs say of their models, beside what the model's server counted; faults in a sentence each."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import populations
from evo.errands import PROBE
from operators.agents.recorded import Answered, load
from populations.check import check
from populations.events import Certainty, Event, Judged, Proposed, Reserved, Settled, Stillborn
from populations.folder import CALLS

ROOT = Path(__file__).parent.parent
ENDS = ("minutes", "exhausted", "evaluations", "tokens")  # of a run, as it was told
UNUSED = "used by no ask: the search was at its end"


@dataclass(frozen=True)
class Served:
    """One answer of the server, as the relay saw it.

    Attributes:
        name: of the run that asked.
        status: of HTTP.
        sha: hash of the answer's text.
        tokens_in, tokens_out: as the server counted them.
        finish: why the text ends.
        seconds: that it took.
    """

    name: str
    status: int
    sha: str
    tokens_in: int
    tokens_out: int
    finish: str
    seconds: float

    @property
    def counts(self) -> tuple[str, int, int]:
        """By which a stored answer is found."""
        return self.sha, self.tokens_in, self.tokens_out


@dataclass(frozen=True)
class Subject:
    """A run and all its events; none where there is no run yet."""

    path: Path
    events: tuple[Event, ...]
    status: dict[str, Any]

    @staticmethod
    def of(path: Path) -> Subject:
        """As it stands now."""
        if not (path / "run.db").exists():
            return Subject(path, (), {"stopped": None})
        with populations.open(path) as run:
            return Subject(path, tuple(record.event for record in run.log.records()), run.status())

    @property
    def ended(self) -> bool:
        """Whether it came to the end that it was to have."""
        return self.status["stopped"] in ENDS

    @cached_property
    def reserved(self) -> dict[str, Reserved]:
        """Calls that were made, probes included."""
        return {event.call: event for event in self.events if isinstance(event, Reserved)}

    @cached_property
    def settled(self) -> dict[str, Settled]:
        """How they ended."""
        return {event.call: event for event in self.events if isinstance(event, Settled)}

    @cached_property
    def asks(self) -> dict[str, list[Proposed | Stillborn]]:
        """The asks that used an answer, by its call."""
        found: dict[str, list[Proposed | Stillborn]] = {}
        for event in self.events:
            if isinstance(event, Proposed | Stillborn) and event.call is not None:
                found.setdefault(event.call, []).append(event)
        return found

    @cached_property
    def answered(self) -> list[str]:
        """Calls to which an answer came, in that order."""
        return [
            call for call, each in self.settled.items() if each.answer is not None and each.failure is None
        ]

    def tokens(self, *certainties: Certainty) -> int:
        """Of calls whose cost is known so."""
        return sum(each.tokens for each in self.settled.values() if each.certainty in certainties)

    def ends(self) -> Iterable[tuple[str, str]]:
        """Agent and end of every answer."""
        judged = {event.id: event.verdict for event in self.events if isinstance(event, Judged)}
        for call in self.answered:
            agent = self.reserved[call].operator
            for ask in self.asks.get(call, []):
                if isinstance(ask, Stillborn):
                    yield agent, f"still-birth: {general(ask.reason)}"
                else:
                    yield agent, f"judged: {judged[ask.id].status}"
            if call not in self.asks:
                yield agent, UNUSED


def answers(path: Path) -> int:
    """How many answers a run has so far."""
    return len(Subject.of(path).answered)


def general(reason: str) -> str:
    """A reason without what only one answer says."""
    head = reason.partition(":")[0]
    return re.sub(r"\d+", "N", head)


def faults(subject: Subject, served: Sequence[Served]) -> list[str]:
    """What does not agree, in a sentence each; empty: everything does.

    Args:
        subject: a run that ended.
        served: what the server answered it.
    """
    return [
        f"{subject.path.name}: {fault}"
        for fault in (
            *_ends(subject),
            *_files(subject),
            *_counts(subject, served),
            *check(subject.path),
            *_replay(subject),
        )
    ]


def _ends(subject: Subject) -> Iterable[str]:
    if not subject.ended:
        yield f"it ended as {subject.status['stopped']}"
    if lost := subject.reserved.keys() - subject.settled.keys():
        yield f"calls {sorted(lost)} are open"
    for call, asks in subject.asks.items():
        if len(asks) > 1:
            yield f"call {call} was used by {len(asks)} asks"
    for reserved in subject.reserved.values():
        settled = subject.settled.get(reserved.call)
        if settled and settled.tokens > reserved.tokens and settled.certainty is not Certainty.COUNTED:
            yield f"call {reserved.call} cost more than its reservation"
    if "Traceback" in Path(f"{subject.path}.err").read_text():
        yield "a traceback was printed"


def _files(subject: Subject) -> Iterable[str]:
    """A file for every call; one more only where an answer came after its run had ended."""
    asked = {call for call, each in subject.reserved.items() if each.operator != PROBE}
    came = {call for call, each in subject.settled.items() if each.answer is not None}
    late = {call for call, each in subject.settled.items() if each.certainty is Certainty.UNKNOWN}
    for kind, known, more in (("asked", asked, set[str]()), ("answer", came, late)):
        ending = f".{kind}.json"
        stored = {file.name.removesuffix(ending) for file in (subject.path / CALLS).glob(f"*{ending}")}
        if lacking := known - stored:
            yield f"{len(lacking)} of {len(known)} calls have no {ending}, the first is {min(lacking)}"
        if beyond := stored - known - more:
            yield f"{len(beyond)} files {ending} belong to no call, the first is {min(beyond)}"


def _counts(subject: Subject, served: Sequence[Served]) -> Iterable[str]:
    """Every stored answer is one that the server gave; both counted the same tokens."""
    given = Counter(each.counts for each in served if each.status == 200)
    counted = 0
    for call in subject.answered:
        try:
            record = load(json.loads((subject.path / CALLS / f"{call}.answer.json").read_text()))
        except OSError:
            continue  # told of above
        assert isinstance(record, Answered)
        spent, text = record.answer.spent, record.answer.text.encode("utf-8", "replace")
        counts = hashlib.sha256(text).hexdigest(), spent.tokens_in, spent.tokens_out
        if not given[counts]:
            yield f"the server gave no such answer as that to call {call}"
        given[counts] -= 1
        if subject.settled[call].certainty is Certainty.COUNTED:
            counted += spent.tokens_in + spent.tokens_out
    for call, reserved in subject.reserved.items():
        if reserved.operator == PROBE and (settled := subject.settled.get(call)):
            found = next((each for each in +given if sum(each[1:]) == settled.tokens), None)
            if found is None and settled.certainty is Certainty.COUNTED:
                yield f"the server gave no answer to the probe {call}"
            elif found is not None:
                given[found] -= 1
                counted += settled.tokens
    if counted != subject.tokens(Certainty.COUNTED):
        yield f"the server counted {counted} tokens, the ledger {subject.tokens(Certainty.COUNTED)}"
    if subject.status["ledger"]["tokens"] != subject.tokens(*Certainty):
        yield f"status says {subject.status['ledger']['tokens']} tokens, the log {subject.tokens(*Certainty)}"
    late = sum((+given).values())
    if late > sum(each.certainty is not Certainty.COUNTED for each in subject.settled.values()):
        yield f"{late} answers of the server belong to no call"


def _replay(subject: Subject) -> Iterable[str]:
    """The population follows from the log, without a model."""
    done = subprocess.run(
        [sys.executable, "-m", "evo", "replay", str(subject.path), "--json"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        yield f"replay ended with status {done.returncode}: {done.stderr[-300:]}"
        return
    told, status = json.loads(done.stdout), subject.status
    outcomes = {outcome: count for outcome, count in status["outcomes"].items() if count}
    known = {**status, "outcomes": outcomes, "best": status["best"] and status["best"]["id"]}
    for key in ("asks", "evaluations", "stillborn", "waiting", "outcomes", "best", "stopped"):
        if told[key] != known[key]:
            yield f"replay says {key} {told[key]}, status {known[key]}"
