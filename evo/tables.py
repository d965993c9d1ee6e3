"""Tables for people, on standard error: the closing table of a run, and lists of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from evo import saying
from evo.profiles import profile_lines
from evo.summary import Comparison, Standing, claimed_interval, exported, standing
from populations.calibration import Roofline
from populations.export_check import Agreement
from populations.run import Member, Run
from populations.verdict import POLICIES, Outcome, Timing, Verdict


def print_closing(run: Run, file: Path | None) -> None:
    """Baselines, best seed and best evolved kernel, cold and warm; who won; where the exported file is."""
    console = _console()
    stand, policy = standing(run), run.card["policy"]
    for case in _timed_cases(run):
        console.print(_speeds(run, stand, case, policy))
    if calls := run.calls():
        console.print(_calls(run, calls))
    for line in _sentences(run, stand, policy):
        console.print(line, soft_wrap=True)
    export = exported(run.export_check(stand.best.id), stand.best.verdict) if stand.best else None
    if export is not None:
        console.print(of_export(export), soft_wrap=True)
    if file is not None:
        console.print(f"exported: {file}", soft_wrap=True)


def print_members(members: Iterable[Member], title: str) -> None:
    """A list of kernels, one a row."""
    listed = list(members)
    models = ["model"] if any(member.model for member in listed) else []
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("id", "status", "speed-up", "at least", "general", "operator", *models, "parents", "why"):
        table.add_column(column, justify="right" if column in ("id", "speed-up", "at least") else "left")
    for m in listed:
        general = {True: "yes", False: "no", None: ""}[m.general]
        parents = " ".join(str(parent) for parent in m.parents)
        status = m.status.value if m.status else "waiting"
        table.add_row(
            str(m.id),
            status,
            times(m.speedup),
            at_least(m.fitness),
            general,
            m.operator,
            *(m.model or "" for _ in models),
            parents,
            m.rationale,
        )
    _console().print(table)


def print_verdict(
    verdict: Verdict, name: str, roofline: Roofline | None = None, export: dict[str, Any] | None = None
) -> None:
    """One kernel's verdict: what, where, why, how fast, and what its device functions are made of."""
    console = _console()
    console.print(f"{name}: {verdict.status} ({verdict.stage}): {verdict.reason}", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD)
    for column in ("case", "policy", "status", "error / bound", "µs", "speed-up", "95 %", "GB/s"):
        table.add_column(column)
    for case in verdict.cases:
        error = "" if case.max_error is None else f"{case.max_error:.3g}"
        for timing in case.timings or (None,):
            speed = ("", "", "", "", "") if timing is None else _speed_cells(timing)
            table.add_row(case.name, speed[0], case.status.value, error, *speed[1:])
    if verdict.cases:
        console.print(table)
    if verdict.speedup is not None:
        console.print(
            f"speed-up {times(verdict.speedup)}, at least {at_least(verdict.fitness)} with 95 % confidence"
        )
    if verdict.general is False:
        console.print(f"not general: fails on {verdict.not_general}")
    for note in verdict.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if export is not None:
        console.print(of_export(export), soft_wrap=True)
    for line in profile_lines(verdict, roofline):
        console.print(line, soft_wrap=True)


def of_export(export: dict[str, Any]) -> str:
    """What running an exported file told (see ``summary.exported``), in a sentence."""
    if export["agreement"] == Agreement.UNCHECKED:
        return f"the exported file was not run beside the plan: {export['reason']}"
    if export["agreement"] == Agreement.DIFFERENT:
        return f"the exported file does not do what was measured: {export['reason']}"
    took = ""
    if export["wall_us"] is not None:
        device = f"; the device needs {export['device_us']:.1f}" if export["device_us"] else ""
        took = f"; a call takes {export['wall_us']:.1f} µs of wall time{device}"
    return f"the exported file does what was measured ({export['reason']}){took}"


def times(speedup: float | None) -> str:
    """A speed-up as people write it."""
    return "" if speedup is None else f"{speedup:.2f}x"


def at_least(fitness: float | None) -> str:
    """The lower bound of a speed-up."""
    return "" if fitness is None else f"{math.exp(fitness):.2f}x"


def _console() -> Console:
    console = Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 110  # a log file has no width; folded cells are hard to read
    return console


def _calls(run: Run, calls: list[dict[str, Any]]) -> Table:
    """What models cost, by agent; how many calls nobody counted."""
    table = Table(title="models", title_justify="left", box=SIMPLE_HEAD)
    for column in ("model", "agent", "calls", "failed", "tokens", "USD", "s", "not counted"):
        table.add_column(column, justify="left" if column in ("model", "agent") else "right")
    for row in calls:
        doubtful = row["estimated"] + row["unknown"]
        spent = (row["tokens"], f"{row['usd']:.4f}", f"{row['seconds']:.1f}")
        cells = map(str, (row["calls"], row["failed"], *spent, doubtful))
        table.add_row(row["model"], row["operator"], *cells)
    total = run.ledger()
    table.add_row("all", "", "", "", f"{total['tokens']:.0f}", f"{total['usd']:.4f}", "", "")
    return table


def _timed_cases(run: Run) -> list[str]:
    calibration = run.calibration
    return list(dict.fromkeys(b.case for b in calibration.baselines)) if calibration else []


def _policies(run: Run) -> list[str]:
    """The policies that this run's target knows."""
    assert run.calibration is not None
    known = {baseline.policy for baseline in run.calibration.baselines}
    return [policy for policy in POLICIES if policy in known]


def _speeds(run: Run, stand: Standing, case: str, policy: str) -> Table:
    table = Table(title=f"{run.card.get('name', run.problem)} {case}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("")
    for name in _policies(run):
        counts = " (counts)" if name == policy else ""
        table.add_column(f"{name} µs", justify="right")
        table.add_column(f"speed-up{counts}", justify="right")
    assert run.calibration is not None
    for name in dict.fromkeys(b.name for b in run.calibration.baselines):
        table.add_row(name, *_baseline_cells(run, name, case))
    for words, member in (("best seed", stand.best_seed), ("best evolved", stand.best_evolved)):
        if member is not None:
            table.add_row(f"{words}, kernel {member.id}", *_member_cells(member, case))
    return table


def _baseline_cells(run: Run, name: str, case: str) -> list[str]:
    assert run.calibration is not None
    cells = []
    for policy in _policies(run):
        found = [b for b in run.calibration.baselines if (b.name, b.case, b.policy) == (name, case, policy)]
        timed = found[0] if found and found[0].median is not None else None
        cells.append(_interval(timed.median, timed.ci95) if timed and timed.median else "")
        cells.append("" if timed is None or timed.counted else "not counted")
    return cells


def _member_cells(member: Member, case: str) -> list[str]:
    verdict = member.verdict
    timings = {t.policy: t for c in verdict.cases if c.name == case for t in c.timings} if verdict else {}
    cells = []
    for policy in _policies(member.run):
        timing = timings.get(policy)
        cells.append(_interval(timing.median, timing.ci95) if timing else "")
        cells.append(_speed_cells(timing)[2] + " " + _speed_cells(timing)[3] if timing else "")
    return cells


def _speed_cells(timing: Timing) -> tuple[str, str, str, str, str]:
    low, high = timing.speedup_ci95
    time = _interval(timing.median, timing.ci95)
    return timing.policy, time, times(timing.speedup), f"[{low:.2f}, {high:.2f}]", f"{timing.gbps:.1f}"


def _interval(median: float, ci95: tuple[float, float] | None) -> str:
    width = "" if ci95 is None else f" ± {(ci95[1] - ci95[0]) / 2 * 1e6:.1f}"
    return f"{median * 1e6:.1f}{width}"


def _sentences(run: Run, stand: Standing, policy: str) -> list[str]:
    seconds = run.ledger()["wall_s"]
    judged = f"{saying.judged(run.evaluations)} in {seconds:.0f} s; {saying.noise_floor(stand.noise)}"
    best = stand.best
    if best is None:
        return [judged, _nothing_measured(run)]
    if best.fitness is None:
        claim = f"kernel {best.id} is {times(best.speedup)} the stronger baseline ({policy}), not confirmed"
    else:
        verb = "beats" if stand.beats_baseline else "is not shown to beat"
        claim = (
            f"kernel {best.id} {verb} the stronger baseline ({policy}): {times(best.speedup)}, "
            f"at least {at_least(best.fitness)} with 95 % confidence"
        )
    lines = [judged, claim, _against_the_seed(stand)]
    if best.general is False and best.verdict is not None:
        lines.append(
            f"it is not general: it fails on {best.verdict.not_general}; the export refuses other shapes"
        )
    notes = best.verdict.notes if best.verdict is not None else ()
    return [*lines, *(note for note in notes if note not in run.card["notes"])]


def _nothing_measured(run: Run) -> str:
    """Why there is no kernel to show: what became of the one that came furthest."""
    judged = [member for member in run.individuals() if member.status is not None]
    if not judged:
        return "nothing was judged: there is no kernel to show"
    furthest = max(judged, key=lambda member: (member.status or Outcome.REJECTED).rank)
    return (
        f"nothing was measured; kernel {furthest.id} ({furthest.rationale}) came furthest: "
        f"{furthest.status} ({furthest.stage}): {furthest.reason}"
    )


def _against_the_seed(stand: Standing) -> str:
    seed, evolved = stand.best_seed, stand.best_evolved
    if seed is None:
        return "no starting kernel holds a measurement"
    if evolved is None:
        return f"nothing evolved was measured; the best seed is {times(seed.speedup)}"
    verb = {
        Comparison.AHEAD: "beats its best seed",
        Comparison.LEVEL: "cannot be told apart from its best seed",
        Comparison.BEHIND: "is slower than its best seed",
        None: "was not confirmed beside its best seed",
    }[stand.against_seed]
    return f"the best evolved kernel {verb}: {_claimed(evolved)} against {_claimed(seed)}"


def _claimed(member: Member) -> str:
    interval = claimed_interval(member.verdict)
    return times(member.speedup) + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
