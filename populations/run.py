"""A run to look into, finished or still running: what notebooks and the command line read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from populations.calibration import Calibration
from populations.events import Calibrated, Diagnosed, Exported, Judged, Promoted, Started, Stopped
from populations.export_check import ExportCheck
from populations.folder import RunError, writer_of
from populations.kernel import Kernel
from populations.learned import Diagnosis
from populations.lineage import Birth, Step, ancestry, unified_diff
from populations.log import EventLog
from populations.verdict import Outcome, Verdict

if TYPE_CHECKING:
    import pandas

# Claims first, each group by rank; at equal rank a general kernel, then the older.
_SHORT = ("id", "speedup", "fitness", "operator", "promoted")
_SETTLED = ("tokens", "usd", "seconds", "certainty", "failure")
_SPENT = {
    "calls": "count(certainty)",
    "tokens": "coalesce(sum(tokens), 0)",
    "usd": "total(usd)",
    "seconds": "total(seconds)",
    "estimated": "count(*) FILTER (WHERE certainty = 'estimated')",
    "unknown": "count(*) FILTER (WHERE certainty = 'unknown')",
    "failed": "count(failure)",
    "open": "count(*) FILTER (WHERE certainty IS NULL)",
}  # of calls, in SQL
_MODEL = "(SELECT json_extract(body, '$.model') FROM events WHERE seq = proposed_seq)"
_BEST_FIRST = "promoted AND fitness IS NOT NULL DESC, rank DESC, general IS TRUE DESC, id"


@dataclass(frozen=True)
class Member:
    """One kernel of a run, with its latest verdict in short.

    Attributes:
        id: number of the evaluation, from 1.
        source_sha: hash of the source.
        language: "cpp", ...
        parents: ids; empty for a seed.
        operator: what made it.
        model: that the operator spoke to; None: it needs none.
        rationale: why it was tried.
        status: how far it came; None: not judged yet.
        stage: the stage that decided.
        reason: the verdict in one line.
        general: whether it is right for all shapes tried; None: not tried.
        speedup: over the strongest baseline, geometric mean over timed cases; None: not timed.
        fitness: lower bound of log speed-up; None below the rounds that a claim needs.
        rank: what selection compares.
        promoted: whether it was measured again for a claim.
        tokens, usd, seconds: what its proposal cost.
        device_s: seconds of device time spent on it.
    """

    id: int
    source_sha: str
    language: str
    parents: tuple[int, ...]
    operator: str
    model: str | None
    rationale: str
    status: Outcome | None
    stage: str | None
    reason: str | None
    general: bool | None
    speedup: float | None
    fitness: float | None
    rank: float | None
    promoted: bool
    tokens: int
    usd: float
    seconds: float
    device_s: float
    run: Run

    @property
    def kernel(self) -> Kernel:
        """Its source and language."""
        return self.run.log.kernel(self.source_sha)

    @property
    def source(self) -> str:
        """Its source text."""
        return self.kernel.source

    @property
    def verdict(self) -> Verdict | None:
        """Its latest verdict in full; None: not judged yet."""
        return self.run.verdict(self.id)

    def __repr__(self) -> str:
        speed = f", {self.speedup:.2f}x" if self.speedup is not None else ""
        return f"<Member {self.id} {self.operator}: {self.status or 'waiting'}{speed}>"


class Run:
    """Read side of a run, a context manager. Every look is fresh, so a run in progress can be watched."""

    def __init__(self, log: EventLog) -> None:
        self.log = log

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.log.folder

    @property
    def started(self) -> Started:
        """The event that made it.

        Raises:
            RunError: it was made, but never started.
        """
        return self.log.started()

    @property
    def problem(self) -> str:
        """Name of its problem."""
        return self.started.problem

    @property
    def settings(self) -> dict[str, Any]:
        """What it was started with."""
        return self.started.settings

    @property
    def card(self) -> dict[str, Any]:
        """The problem's card, as plain data."""
        return self.started.card

    @property
    def calibration(self) -> Calibration | None:
        """The device's latest calibration; None: not yet."""
        event = self._last("calibrated")
        return event.calibration if isinstance(event, Calibrated) else None

    @property
    def evaluations(self) -> int:
        """Kernels judged."""
        return int(self.log.query("SELECT count(judged_seq) FROM individuals")[0][0])

    @property
    def best(self) -> Member | None:
        """The promoted kernel with the highest rank, else the highest-ranking one; None: none measured."""
        return next(iter(self.top(1)), None)

    def top(self, n: int = 10) -> list[Member]:
        """The n best measured kernels: promoted claims first, then the rest, each by rank."""
        return list(self._members(f"WHERE rank IS NOT NULL ORDER BY {_BEST_FIRST} LIMIT ?", n))

    def individuals(self) -> Iterator[Member]:
        """All kernels, by id."""
        return self._members("ORDER BY id")

    def get(self, id: int | str) -> Member:
        """One kernel.

        Args:
            id: its number, also as text, or "best".

        Raises:
            RunError: there is none.
        """
        if id == "best":
            if self.best is None:
                raise RunError(
                    f"run {self.path} has no best kernel: none was measured, so name one by its number"
                )
            return self.best
        try:
            number = int(id)
        except ValueError:
            raise RunError(f'{id!r} is not a kernel of run {self.path}: give its number or "best"') from None
        for member in self._members("WHERE id = ?", number):
            return member
        (count,) = self.log.query("SELECT count(*) FROM individuals")[0]
        known = f"its kernels are 1 to {count}" if count else "it has none yet"
        raise RunError(f"run {self.path} has no kernel {number}: {known}")

    def verdict(self, id: int | str) -> Verdict | None:
        """A kernel's latest verdict in full; None: not judged yet.

        Raises:
            RunError: there is no such kernel.
        """
        number = self.get(id).id
        ((seq,),) = self.log.query("SELECT verdict_seq FROM individuals WHERE id = ?", number)
        event = self.log.event(seq) if seq is not None else None
        return event.verdict if isinstance(event, Judged | Promoted) else None

    def export_check(self, id: int | str) -> ExportCheck | None:
        """What came of running a kernel's exported file; None: it was not run.

        Raises:
            RunError: there is no such kernel.
        """
        number = self.get(id).id
        found = self.log.query("SELECT seq FROM events WHERE kind = 'exported' ORDER BY seq DESC")
        events = (self.log.event(seq) for (seq,) in found)
        return next((e.check for e in events if isinstance(e, Exported) and e.id == number), None)

    def diagnosis(self, id: int | str) -> Diagnosis | None:
        """What a model said that holds a kernel back; None: nobody was asked, or nothing was understood.

        Raises:
            RunError: there is no such kernel.
        """
        about = "SELECT seq FROM events WHERE kind = 'diagnosed' AND json_extract(body, '$.id') = ?"
        events = (self.log.event(seq) for (seq,) in self.log.query(about, self.get(id).id))
        return next((e.diagnosis for e in events if isinstance(e, Diagnosed) and e.diagnosis), None)

    def lineage(self, id: int | str) -> list[Step]:
        """A kernel's ancestors, roots first, itself last, with what each step gained.

        Raises:
            RunError: there is no such kernel.
        """
        return ancestry(self._birth, self.get(id).id)

    def diff(self, a: int | str, b: int | str) -> str:
        """The change of source from one kernel to another, as a unified diff.

        Raises:
            RunError: there is no such kernel.
        """
        old, new = self.get(a), self.get(b)
        return unified_diff(old.source, new.source, f"kernel {old.id}", f"kernel {new.id}")

    def frame(self, name: str) -> pandas.DataFrame:
        """A tidy table; ``frames.COLUMNS`` describes its columns and units.

        Args:
            name: "individuals", "cases", "samples", "profiles", "operators" or "events".

        Raises:
            RunError: another name.
        """
        from populations import frames

        return frames.frame(self.log, name)

    def status(self) -> dict[str, Any]:
        """Where the run stands, as plain data: counts, best kernel, ledger, why it stopped."""
        started, best, last = self.started, self.best, self._last("stopped", "resumed", "started")
        asks, proposed = self.log.query("SELECT count(*), count(individual) FROM asks")[0]
        outcomes = dict(
            self.log.query("SELECT status, count(*) FROM individuals WHERE status NOTNULL GROUP BY status")
        )
        seeds = self._members(f"WHERE operator = 'seed' AND rank NOTNULL ORDER BY {_BEST_FIRST} LIMIT 1")
        return {
            "run_dir": str(self.path),
            "problem": started.problem,
            "target": started.target,
            "running": writer_of(self.path) is not None,
            "stopped": last.why if isinstance(last, Stopped) else None,
            "asks": asks,
            "stillborn": asks - proposed,
            "waiting": proposed - self.evaluations,
            "evaluations": self.evaluations,
            "outcomes": {outcome.value: outcomes.get(outcome.value, 0) for outcome in Outcome},
            "best": best and {name: getattr(best, name) for name in _SHORT},
            "seed_best": next((seed.speedup for seed in seeds), None),
            "ledger": self.ledger(),
            "calls": self.calls(),
        }

    def calls(self) -> list[dict[str, Any]]:
        """What models were called for, a row for each model and operator.

        Each has ``model``, ``operator``, ``calls`` that ended, ``tokens``, ``usd``, ``seconds``; how many
        calls were ``estimated`` or ``unknown`` and not counted by the server; how many ``failed`` or are
        ``open``.
        """
        names = ("model", "operator", *_SPENT)
        told = "SELECT {} FROM events WHERE kind = '{}'"
        fields = {"reserved": ("call", "model", "operator"), "settled": ("call", *_SETTLED)}
        one, other = (
            told.format(", ".join(f"json_extract(body, '$.{name}') AS {name}" for name in wanted), kind)
            for kind, wanted in fields.items()
        )
        columns = ", ".join(("model", "operator", *_SPENT.values()))
        query = f"SELECT {columns} FROM ({one}) LEFT JOIN ({other}) USING (call)"
        rows = self.log.query(f"{query} GROUP BY model, operator ORDER BY model, operator")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def ledger(self) -> dict[str, float]:
        """What was spent: evaluations, wall_s (while a process was at it), device_s, tokens, usd."""
        ((device_s,),) = self.log.query("SELECT total(device_s) FROM individuals")
        tokens, usd = (f"json_extract(body, '$.{what}')" for what in ("tokens", "usd"))
        told = "kind = 'settled' OR (kind = 'proposed' AND json_extract(body, '$.model') IS NULL)"
        spent = f"SELECT coalesce(sum({tokens}), 0), total({usd}) FROM events WHERE {told}"
        ((tokens, usd),) = self.log.query(spent)
        steps = "SELECT kind, time, lag(time, 1, time) OVER (ORDER BY seq) AS before FROM events"
        awake = f"SELECT total(max(0, time - before)) FROM ({steps}) WHERE kind != 'resumed'"
        ((wall_s,),) = self.log.query(awake)
        spending = {"wall_s": wall_s, "device_s": device_s, "tokens": tokens, "usd": usd}
        return {"evaluations": self.evaluations, **spending}

    def close(self) -> None:
        """Let go of the file."""
        self.log.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.path}: {self.evaluations} evaluations>"

    def _members(self, clause: str, *values: object) -> Iterator[Member]:
        columns = [field.name for field in fields(Member) if field.name != "run"]
        chosen = ", ".join(_MODEL if name == "model" else name for name in columns)
        for row in self.log.query(f"SELECT {chosen} FROM individuals {clause}", *values):
            told: dict[str, Any] = dict(zip(columns, row, strict=True))
            try:
                told["parents"] = tuple(json.loads(told["parents"]))
                told["status"] = Outcome(told["status"]) if told["status"] else None
            except (ValueError, TypeError) as why:
                raise RunError(
                    f"run {self.path}: what is stored of kernel {told['id']} is damaged ({why}): "
                    f"`kernel-evo check {self.path}` says more"
                ) from why
            told["general"] = None if told["general"] is None else bool(told["general"])
            told["promoted"] = bool(told["promoted"])
            yield Member(**told, run=self)

    def _birth(self, id: int) -> Birth:
        m = self.get(id)
        return Birth(m.id, m.parents, m.operator, m.rationale, m.status, m.speedup, m.rank)

    def _last(self, *kinds: str) -> object:
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT seq FROM events WHERE kind IN ({marks}) ORDER BY seq DESC LIMIT 1"
        return next((self.log.event(seq) for (seq,) in self.log.query(query, *kinds)), None)


def open_run(path: Path | str) -> Run:
    """A run to look into, finished or still running.

    Raises:
        RunError: there is no run at this path, or it cannot be read.
    """
    return Run(EventLog.open(path, readonly=True))
