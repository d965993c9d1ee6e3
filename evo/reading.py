"""Commands that look into a run, finished or still running; none of them needs a device."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evo import saying

RunFolder = Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")]
Id = Annotated[str, typer.Argument(help='A kernel\'s number, or "best".', metavar="ID")]


def status(run: RunFolder, as_json: saying.Json = False) -> None:
    """Where a run stands."""
    import populations

    with populations.open(run) as opened:
        told = opened.status()
    rows = [(key, _in_words(value)) for key, value in told.items() if key != "calls"]
    rows += [("calls", line) for line in map(saying.calls, told["calls"])]
    saying.data(told, as_json, rows)


def top(
    run: RunFolder,
    n: Annotated[int, typer.Option("-n", help="How many.", min=1)] = 10,
    as_json: saying.Json = False,
) -> None:
    """The best kernels of a run."""
    import populations

    with populations.open(run) as opened:
        members = opened.top(n)
        if as_json:
            saying.data([_member(member) for member in members], as_json)
        else:
            from evo.tables import print_members

            print_members(members, f"best of {run}")


def show(run: RunFolder, id: Id, as_json: saying.Json = False) -> None:
    """One kernel: its source on standard output, its verdict on standard error."""
    import populations
    from evo.summary import exported

    with populations.open(run) as opened:
        member = opened.get(id)
        verdict, source, calibration = member.verdict, member.source, opened.calibration
        export = exported(opened.export_check(member.id), verdict)
        diagnosis = opened.diagnosis(member.id)
        if as_json:
            judged = {"verdict": verdict.to_json() if verdict else None, "export": export}
            judged["diagnosis"] = asdict(diagnosis) if diagnosis else None
            saying.data({**_member(member), **judged, "source": source}, as_json)
            return
    if verdict is not None:
        from evo.tables import print_verdict

        roofline = calibration.roofline if calibration else None
        name = f"kernel {member.id} ({member.operator}, {member.rationale})"
        print_verdict(verdict, name, roofline, export)
    if diagnosis is not None:
        lines = [f"held back, by a diagnosis: {diagnosis.bottleneck}"]
        lines += [f"  seen: {line}" for line in diagnosis.evidence]
        lines += [f"  to do: {line}" for line in diagnosis.prescriptions]
        saying.data(None, as_json, [(line,) for line in lines])
    print(source)


def diff(
    run: RunFolder,
    a: Annotated[str, typer.Argument(help='A kernel\'s number, or "best".', metavar="A")],
    b: Annotated[str, typer.Argument(help='A kernel\'s number, or "best".', metavar="B")],
    as_json: saying.Json = False,
) -> None:
    """What changed in the source from kernel A to kernel B."""
    import populations

    with populations.open(run) as opened:
        text = opened.diff(a, b)
    if as_json:
        saying.data({"a": a, "b": b, "diff": text}, as_json)
    else:
        print(text)


def lineage(run: RunFolder, id: Id, as_json: saying.Json = False) -> None:
    """How a kernel came about, from its seeds on, and what each step gained."""
    import populations

    with populations.open(run) as opened:
        steps = opened.lineage(id)
    told = [
        {
            "id": step.birth.id,
            "parents": list(step.birth.parents),
            "operator": step.birth.operator,
            "rationale": step.birth.rationale,
            "status": step.birth.status,
            "speedup": step.birth.speedup,
            "rank": step.birth.rank,
            "gain": step.gain,
        }
        for step in steps
    ]
    rows = [
        (
            str(step.birth.id),
            step.birth.operator,
            "" if step.birth.speedup is None else f"{step.birth.speedup:.3f}x",
            "" if step.gain is None else f"{100 * step.gain:+.1f} %",
            step.birth.rationale,
        )
        for step in steps
    ]
    saying.data(told, as_json, rows)


def export(
    run: RunFolder,
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.", metavar="FILE")],
    id: Id = "best",
    as_json: saying.Json = False,
) -> None:
    """Write a kernel to a file, with a comment that says where it comes from."""
    import populations
    from evo.export import export as write

    with populations.open(run) as opened:
        member = write(opened, id, output)
    saying.data({"id": member.id, "file": str(output)}, as_json, [(f"kernel {member.id}", "->", str(output))])


def check(run: RunFolder, as_json: saying.Json = False) -> None:
    """Verify a run's invariants; exit code 1 where one is broken."""
    from populations.check import check as broken

    found = broken(run)
    rows = [(line,) for line in found] or [(f"run {run} is sound",)]
    saying.data({"run_dir": str(run), "broken": found}, as_json, rows)
    saying.end(not found)


def replay(run: RunFolder, as_json: saying.Json = False) -> None:
    """Rebuild the population from the log alone: no device, no operator."""
    told = _replayed(run)
    saying.data(told, as_json, [(key, str(value)) for key, value in told.items()])


def _replayed(run: Path) -> dict[str, Any]:
    from evo.folded import replayed
    from evo.settings import checked
    from populations import EventLog

    with EventLog.open(run, readonly=True) as log:
        begun = log.started()
        state, course = replayed(log, checked(begun.settings["search"], f"settings of run {run}"))
    return {
        "run_dir": str(run),
        "asks": state.asks,
        "evaluations": state.evaluations,
        "stillborn": state.stillborn,
        "waiting": len(state.waiting),
        "best": state.best.id if state.best else None,
        "population": [one.id for one in state.archive],
        "outcomes": {outcome.value: count for outcome, count in state.outcomes.items()},
        "diagnosed": sorted(course.memory.diagnoses),
        "lessons": [held.lesson.text for held in course.memory.lessons],
        "stopped": state.stopped,
    }


def _in_words(value: object) -> str:
    """A value for people: four digits, and of several numbers those that are not zero."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(each)}" for key, each in value.items() if each)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)


def _member(member: Any) -> dict[str, Any]:
    """A ``populations.run.Member`` as plain data."""
    keys = (
        "id", "source_sha", "language", "operator", "model", "rationale", "status", "stage", "reason",
        "general", "speedup", "fitness", "rank", "promoted",
    )  # fmt: skip
    return {**{key: getattr(member, key) for key in keys}, "parents": list(member.parents)}
