"""A run as tidy pandas tables: one row an observation, one column a variable, units in ``COLUMNS``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from populations.events import Judged, Promoted
from populations.folder import RunError
from populations.log import EventLog
from populations.profile import CLASSES, KernelProfile, main_kernel
from populations.state import State
from populations.verdict import Outcome

if TYPE_CHECKING:
    import pandas

COLUMNS: dict[str, dict[str, str]] = {
    "individuals": {
        "id": "number of the kernel, from 1 in the order proposed",
        "evaluation": "place in the order judged, from 1; missing: not judged yet",
        "judged_s": "seconds from the run's start to its first verdict, pauses included",
        "operator": "what made it",
        "model": "that the operator spoke to; missing: none",
        "parents": "ids, a tuple; empty for a seed",
        "status": "how far it came, an ordered category; missing: not judged yet",
        "stage": "the stage that decided",
        "reason": "the verdict in one line",
        "general": "whether it is right for all derived cases; missing: not tried",
        "not_general": "the derived case that failed",
        "speedup": "over the strongest baseline, geometric mean over timed cases, declared policy",
        "fitness": "95 percent lower bound of log speed-up; missing: too few rounds for a claim",
        "rank": "log speed-up that selection compares",
        "promoted": "whether it was measured again for a claim; its verdict is then the later one",
        "numerics": "device, interpreter or none",
        "isolation": "process or weak",
        "rationale": "why it was tried",
        "language": "kernel language",
        "tokens": "language-model tokens its proposal took",
        "usd": "US dollars its proposal took",
        "seconds": "seconds its proposal took",
        "device_s": "seconds of device time spent on it",
        "source_sha": "SHA-256 of its source",
        "registers": "of a thread, in the device function with the most instructions; missing: none",
        "spill_bytes": "of spilled registers, there",
        "shared_bytes": "of shared memory of a block, there",
        "occupancy": "warps that fit a multiprocessor as a share of what it holds, there",
        "limiter": "what allows no more of them: warps, blocks, registers or shared memory",
        "instructions": "in the code there; missing: no disassembler",
    },
    "cases": {
        "id": "the kernel",
        "case": "name of the problem's case",
        "held_out": "never shown to operators",
        "derived": "made by the loader; decides `general` only",
        "status": "what this case said, an ordered category",
        "reason": "why, where it is not good",
        "max_error": "worst error in units of the bound; above 1 is wrong",
        "policy": "warm or cold; missing: not timed. One row a policy",
        "median": "seconds a call, median over rounds",
        "ci95_low": "95 percent interval of the median, seconds",
        "ci95_high": "95 percent interval of the median, seconds",
        "baseline": "the baseline it was paired with",
        "baseline_median": "seconds a call of the baseline in the same rounds",
        "speedup": "median over rounds of baseline / kernel",
        "speedup_ci95_low": "95 percent interval of the speed-up",
        "speedup_ci95_high": "95 percent interval of the speed-up",
        "fitness": "95 percent lower bound of log speed-up",
        "noise_floor": "half-width of the A/A interval of log speed-up",
        "rank": "log speed-up that selection compares",
        "gbps": "compulsory bytes over median time, 1e9 bytes a second",
        "tflops": "FLOPs over median time, 1e12 a second",
    },
    "samples": {
        "id": "the kernel; samples of its latest verdict",
        "case": "name of the problem's case",
        "policy": "warm or cold",
        "round": "from 1, in the order measured",
        "contender": "`kernel`, or the name of the baseline it was paired with",
        "seconds": "seconds a call, lower quartile of the round's blocks",
    },
    "profiles": {
        "id": "the kernel",
        "function": "a device function that the first timed case launches; of the latest verdict",
        "launches": "in one call of the entry",
        "warps": "of a block",
        "registers": "of a thread",
        "spill_bytes": "of spilled registers, loads and stores in the code",
        "shared_bytes": "of shared memory of a block",
        "blocks": "that fit a multiprocessor at a time",
        "occupancy": "their warps as a share of what a multiprocessor holds",
        "limiter": "what allows no more of them: warps, blocks, registers or shared memory",
        "instructions": "in the code, each counted once; missing: no disassembler",
        **{kind: f"share of instructions: {words}" for kind, words in CLASSES.items()},
    },
    "operators": {
        "operator": "name",
        "asks": "how often it was asked",
        "stillborn": "asks that led to no evaluation",
        "evaluations": "kernels judged",
        **{outcome.value: f"kernels whose first verdict was {outcome.value}" for outcome in Outcome},
        "over_parents": "measured kernels that ranked above their best measured parent",
        "parent_gain": "sum of those gains, log speed-up",
        "records": "measured kernels that ranked above all before them",
        "record_gain": "sum of those gains, log speed-up",
        "tokens": "language-model tokens",
        "usd": "US dollars",
        "seconds": "seconds spent proposing",
    },
    "events": {
        "seq": "number of the event, from 1",
        "time": "when, UTC",
        "kind": "started, calibrated, proposed, stillborn, judged, promoted, exported, reserved, settled, "
        "diagnosed, reflected, resumed or stopped",
        "id": "the kernel it is about; missing: none",
        "body": "the whole event as JSON text",
    },
}
_TYPES = {
    **dict.fromkeys(("id", "evaluation", "tokens", "round", "asks", "stillborn", "evaluations"), "Int64"),
    **dict.fromkeys((*(outcome.value for outcome in Outcome), "over_parents", "records", "seq"), "Int64"),
    **dict.fromkeys(("general", "held_out", "derived", "promoted"), "boolean"),
    **dict.fromkeys(("usd", "seconds", "device_s", "judged_s", "max_error", "median", "ci95_low"), "float64"),
    **dict.fromkeys(("ci95_high", "baseline_median", "speedup", "speedup_ci95_low", "fitness"), "float64"),
    **dict.fromkeys(("speedup_ci95_high", "noise_floor", "rank", "gbps", "tflops"), "float64"),
    **dict.fromkeys(("parent_gain", "record_gain", "occupancy", *CLASSES), "float64"),
    **dict.fromkeys(("registers", "spill_bytes", "shared_bytes", "instructions"), "Int64"),
    **dict.fromkeys(("launches", "warps", "blocks"), "Int64"),
    "parents": "object",
}  # and all others are text
_INDIVIDUALS = """
SELECT id, CASE WHEN judged_seq NOTNULL THEN row_number() OVER (ORDER BY judged_seq IS NULL, judged_seq) END,
    judged.time - (SELECT time FROM events WHERE seq = 1), operator, json_extract(proposed.body, '$.model'),
    parents, status, stage, reason, general,
    not_general, speedup, fitness, rank, promoted, numerics, isolation, rationale, language, tokens, usd,
    seconds, device_s, source_sha
FROM individuals JOIN events AS proposed ON proposed.seq = proposed_seq
    LEFT JOIN events AS judged ON judged.seq = judged_seq ORDER BY id"""
_PROFILES = """
SELECT id, json_extract(body, '$.verdict.profile')
FROM individuals JOIN events ON seq = verdict_seq ORDER BY id"""
_CASES = """
SELECT individual, name, held_out, derived, status, reason, max_error, policy, median, ci95_low, ci95_high,
    baseline, baseline_median, speedup, speedup_ci95_low, speedup_ci95_high, fitness, noise_floor, rank, gbps,
    tflops
FROM cases ORDER BY individual, position"""

_Rows = list[tuple[Any, ...]]
_PROFILE = TypeAdapter(tuple[KernelProfile, ...])


def frame(log: EventLog, name: str) -> pandas.DataFrame:
    """One of a run's tables.

    Args:
        log: the run's.
        name: a key of ``COLUMNS``, which describes the columns.

    Raises:
        RunError: another name.
    """
    import pandas

    if name not in COLUMNS:
        raise RunError(f"a run has no frame called {name!r}: choose one of {', '.join(COLUMNS)}")
    columns = list(COLUMNS[name])
    table = pandas.DataFrame(_ROWS[name](log), columns=pandas.Index(columns))
    types: dict[str, Any] = {column: _TYPES.get(column, "string") for column in columns}
    if "status" in columns:
        types["status"] = pandas.CategoricalDtype([outcome.value for outcome in Outcome], ordered=True)
    if "time" in columns:
        types["time"] = "datetime64[us, UTC]"
        table["time"] = pandas.to_datetime(table["time"], unit="s", utc=True)
    return table.astype(types)


def _individuals(log: EventLog) -> _Rows:
    parents = list(COLUMNS["individuals"]).index("parents")
    mains = {id: main_kernel(profile) for id, profile in _each_profile(log)}
    return [
        (*row[:parents], tuple(json.loads(row[parents])), *row[parents + 1 :], *_static(mains.get(row[0])))
        for row in log.query(_INDIVIDUALS)
    ]


def _static(kernel: KernelProfile | None) -> tuple[Any, ...]:
    names = ("registers", "spill_bytes", "shared_bytes", "occupancy", "limiter", "instructions")
    return tuple(getattr(kernel, name, None) for name in names)


def _profiles(log: EventLog) -> _Rows:
    rows: _Rows = []
    for id, profile in _each_profile(log):
        for one in profile:
            told = (one.name, one.launches, one.warps, one.registers, one.spill_bytes, one.shared_bytes)
            bound = (one.blocks, one.occupancy, one.limiter, one.instructions)
            shares = (None if one.mix is None else one.mix.get(kind, 0.0) for kind in CLASSES)
            rows.append((id, *told, *bound, *shares))
    return rows


def _each_profile(log: EventLog) -> Iterator[tuple[int, tuple[KernelProfile, ...]]]:
    """Profiles of latest verdicts; runs of versions that had none hold none."""
    for id, text in log.query(_PROFILES):
        yield id, _PROFILE.validate_json(text) if text else ()


def _cases(log: EventLog) -> _Rows:
    return log.query(_CASES)


def _samples(log: EventLog) -> _Rows:
    return list(_each_sample(log))


def _each_sample(log: EventLog) -> Iterator[tuple[Any, ...]]:
    timed = "SELECT DISTINCT individual FROM cases WHERE policy NOTNULL"
    for (seq,) in log.query(f"SELECT verdict_seq FROM individuals WHERE id IN ({timed}) ORDER BY id"):
        event = log.event(seq)
        assert isinstance(event, Judged | Promoted)
        for case in event.verdict.cases:
            for timing in case.timings:
                contenders = {"kernel": timing.samples, timing.baseline: timing.baseline_samples}
                for contender, samples in contenders.items():
                    for number, seconds in enumerate(samples, start=1):
                        yield (event.id, case.name, timing.policy, number, contender, seconds)


def _operators(log: EventLog) -> _Rows:
    rows = []
    for name, record in sorted(State.replay(log, capacity=1).operators.items()):
        counts = {outcome.value: record.evaluations[outcome] for outcome in Outcome}
        row = {**vars(record), **counts, "operator": name, "evaluations": sum(counts.values())}
        rows.append(tuple(row[column] for column in COLUMNS["operators"]))
    return rows


def _events(log: EventLog) -> _Rows:
    return log.query("SELECT seq, time, kind, json_extract(body, '$.id'), body FROM events ORDER BY seq")


_ROWS: dict[str, Callable[[EventLog], _Rows]] = {
    "individuals": _individuals,
    "cases": _cases,
    "samples": _samples,
    "profiles": _profiles,
    "operators": _operators,
    "events": _events,
}
