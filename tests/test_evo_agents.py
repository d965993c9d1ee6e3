"""A search with agents, against a server on a real socket that answers from the prompt."""

# ruff: noqa: ARG002, ARG005 -- stand-ins take what the seam hands them
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Body, ChatServer, serving
from deap import base

import evo
import populations
from fitness.target import Built
from fitness.testing import InstantTarget
from operators.agents.models import ModelSettings
from populations import Outcome, Verdict
from populations.events import Certainty, Event, Settled
from populations.run import Member
from populations.verdict import CaseVerdict, Evidence, Stage

HERE = __name__
KEY = "sk-nobody-may-see-this-0123456789"
QUIET = {"fuse": 0.0}


def kernel(*parts: str) -> str:
    """A kernel made of named parts: BROKEN fails, FAST and LEAN are worth something."""
    names = "\n".join(f"static int {part};" for part in parts)
    return (
        "#include <cstdint>\n"
        'extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {\n'
        "    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out0[i] = x[i];\n}\n"
        f"{names}\n"
    )


class Parts(InstantTarget):
    """What a kernel is worth stands in its parts; one that is BROKEN is wrong on the visible case."""

    def __init__(self, *arguments: Any, **further: Any) -> None:
        super().__init__(failures=0.0)

    def screen(self, built: Built) -> Verdict:
        return self._judged(built, super().screen(built))

    def promote(self, built: Built) -> Verdict:
        return self._judged(built, super().promote(built))

    def _judged(self, built: Built, verdict: Verdict) -> Verdict:
        source = built.kernel.source
        if "BROKEN" in source:
            name = self.card.given.name
            reason = f"case {name}: output 0 at [1, 16] is 0.25, not 0.5"
            case = CaseVerdict(name, False, False, Outcome.INCORRECT, reason, 31250.0)
            evidence = Evidence(name, 0, (1, 16), 0.25, 0.5, 0.25, 8e-6)
            return Verdict(Outcome.INCORRECT, Stage.SMOKE, reason, evidence, (case,))
        gain = 0.3 * sum(part in source for part in ("FAST", "LEAN"))
        cases = tuple(
            replace(
                case,
                timings=tuple(
                    replace(
                        timing,
                        speedup=1 + gain,
                        speedup_ci95=(0.99 + gain, 1.01 + gain),
                        fitness=None if timing.fitness is None else gain,
                        rank=gain,
                    )
                    for timing in case.timings
                ),
            )
            for case in verdict.cases
        )
        fitness = None if verdict.fitness is None else gain
        return replace(verdict, cases=cases, speedup=1 + gain, rank=gain, fitness=fitness)


class PartsBeside(Parts):
    """The same, where builds disturb no measuring."""

    separate = True


def says(rationale: str, *parts: str) -> str:
    return f"Rationale: {rationale}\n\n```cpp\n{kernel(*parts)}```\n"


def author(body: Body) -> str:
    """Answers from the prompt alone: a plain draft, of which it makes a broken child; a repair where it sees
    why that one failed; of what was repaired a fast and a lean child; both in one where it sees two."""
    asked = body["messages"][-1]["content"]
    task = asked.partition("# Your task")[2]
    if not task:
        return "ready"
    if "Write a first kernel" in task:
        return says("plain loops", "PLAIN")
    if "repair it" in task:
        seen = "got 0.25, expected 0.5" in asked and "BROKEN" in asked
        return says("the index was off by one", "WHOLE") if seen else "I cannot see what is wrong."
    if "joins what makes each" in task:
        both = "FAST" in asked and "LEAN" in asked
        return says("loop of one, loads of the other", "FAST", "LEAN") if both else "They are the same to me."
    if "WHOLE" not in asked.partition("# The parent")[2]:
        return says("one pass less", "BROKEN")
    fast = "wider lanes ->" in asked or "FAST" in asked
    return says("fewer loads", "WHOLE", "LEAN") if fast else says("wider lanes", "WHOLE", "FAST")


def speak(server: ChatServer, **further: Any) -> ModelSettings:
    prices = {"price_in": 1.0, "price_out": 2.0, "retries": 1, "timeout_s": 5.0, "max_output": 2000}
    return ModelSettings("small", server.url, **{**prices, **further})


def nothing() -> base.Toolbox:
    """Tools that never apply, so that all comes from models."""
    toolbox = evo.toolbox("instant")
    for tool in ("mutate", "mate"):
        toolbox.register(tool, lambda parents, brief, rng: None)
    toolbox.register("tune", lambda parents, brief, rng, tried: None)
    return toolbox


def search(folder: Path, server: ChatServer, target: str = "Parts", **more: Any) -> populations.Run:
    more = {"evaluations": 6, "minutes": 1.0, "patience": 100, "models": [speak(server)], **more}
    return evo.search("instant", f"{HERE}:{target}", run_dir=folder / "run", **more)


def events(run: populations.Run, *kinds: type[Event]) -> list[Any]:
    return [record.event for record in run.log.records() if isinstance(record.event, kinds)]


def made_by(run: populations.Run, operator: str) -> list[Member]:
    return [member for member in run.individuals() if member.operator == operator]


@pytest.mark.parametrize("target", ["Parts", "PartsBeside"])
def test_a_draft_that_fails_is_repaired_mutated_and_crossed(tmp_path: Path, target: str) -> None:
    with serving(author) as server, search(tmp_path, server, target, toolbox=nothing()) as run:
        (repaired,) = made_by(run, "agent_repair")
        broken, draft = run.get(repaired.parents[0]), made_by(run, "agent_draft")[0]
        assert (draft.status, draft.parents) == (Outcome.MEASURED, ())
        assert (broken.operator, broken.status, broken.parents) == (
            "agent_mutate", Outcome.INCORRECT, (draft.id,),
        )  # fmt: skip
        assert (repaired.status, repaired.rationale) == (Outcome.MEASURED, "the index was off by one")
        crossed = made_by(run, "agent_cross")[-1]
        fast, lean = (next(m for m in run.individuals() if part in m.source) for part in ("FAST", "LEAN"))
        assert {fast.operator, lean.operator} == {"agent_mutate"}
        assert set(crossed.parents) == {fast.id, lean.id}
        assert (crossed.rank or 0) > (fast.rank or 0) > (repaired.rank or 0)
        line = [step.birth.id for step in run.lineage(crossed.id)]
        assert {draft.id, broken.id, repaired.id} < set(line)
        assert run.best is not None and run.best.id == crossed.id
        assert populations.check(run.path) == []


def test_completed_answers_cost_what_the_server_counted(tmp_path: Path) -> None:
    with serving(author) as server, search(tmp_path, server, toolbox=nothing()) as run:
        settled = events(run, Settled)
        counted = [each for each in settled if each.certainty is Certainty.COUNTED]
        unread = len(server.requests) - len(counted)
        assert run.ledger()["tokens"] == sum(each.tokens for each in settled)
        assert unread == 0
        assert sum(each.tokens for each in counted) == server.read + server.written
