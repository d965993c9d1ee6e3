"""A search with agents on the CPU, judged for real: a draft, a wrong child, its repair, and a crossover."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from chat_server import Body, serving
from test_evo_agents import KEY, made_by, nothing, speak

import populations
from evo import session
from evo.progress import Silent
from evo.settings import settings
from populations import Outcome
from populations.events import Event
from populations.state import State

pytestmark = [pytest.mark.judge, pytest.mark.slow, pytest.mark.timeout(900)]
PROBLEM = '''"""Twice a matrix, and one."""
import torch

ROWS = 64
COLS = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
'''
BLOCKS = """    const int64_t n = shapes[0] * shapes[1];
    {pragma}
    for (int64_t b = 0; b < n; b += {block})
        for (int64_t i = b; i < (b + {block} < n ? b + {block} : n); ++i) out[i] = {value};
"""
BODIES = {
    "PLAIN": "    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = 2.0f * x[i] + 1.0f;\n",
    "BROKEN": "    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = 3.0f * x[i] + 1.0f;\n",
    "WHOLE": BLOCKS.format(pragma="", block=32, value="2.0f * x[i] + 1.0f"),
    "FAST": BLOCKS.format(pragma="#pragma omp parallel for", block=4096, value="2.0f * x[i] + 1.0f"),
    "LEAN": BLOCKS.format(pragma="", block=512, value="(x[i] + 0.5f) * 2.0f"),
    "BOTH": BLOCKS.format(pragma="#pragma omp parallel for", block=8192, value="(x[i] + 0.5f) * 2.0f"),
}


def says(rationale: str, part: str) -> str:
    head = '#include <cstdint>\nextern "C" void kernel_function(\n'
    head += "    const float* x, float* out, const int64_t* shapes) {\n"
    return f"Rationale: {rationale}\n\n```cpp\n{head}    // {part}\n{BODIES[part]}}}\n```\n"


def author(body: Body) -> str:
    """As in test_evo_agents: it repairs only where it sees the evidence, and joins only what it sees."""
    asked = body["messages"][-1]["content"]
    task, parent = asked.partition("# Your task")[2], asked.partition("# The parent")[2]
    if "Write a first kernel" in task:
        return says("plain loops", "PLAIN")
    if "repair it" in task:
        seen = "worst element: output 0 at [" in asked and "// BROKEN" in asked
        return says("three where two belongs", "WHOLE") if seen else "I cannot see what is wrong."
    if "joins what makes each" in task:
        both = "// FAST" in asked and "// LEAN" in asked
        return says("threads of one, sum of the other", "BOTH") if both else "They are the same to me."
    if "# The parent" not in asked:
        return "ready"
    if "// WHOLE" not in parent and "// FAST" not in parent:
        return says("one pass less", "BROKEN")
    return says("a sum first", "LEAN") if "threads" in asked else says("all the threads", "FAST")


def descendants(pid: int) -> list[int]:
    """All processes below this one."""
    found, parents = [pid], {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended meanwhile
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


class Watchman(Silent):
    """Looks into the environment of every process that a search starts."""

    def __init__(self) -> None:
        self.looked, self.leaks = set[int](), list[int]()

    def told(self, event: Event, state: State) -> None:
        del event, state
        for pid in descendants(os.getpid()):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            self.looked.add(pid)
            if KEY.encode() in environment:
                self.leaks.append(pid)


def test_a_draft_is_mutated_repaired_and_crossed_on_the_cpu_and_no_process_gets_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_KEY", KEY)
    problem, watchman = tmp_path / "twice.py", Watchman()
    problem.write_text(PROBLEM)
    with serving(author) as server:
        model = speak(server, key_env="SMALL_KEY")
        chosen = settings(evaluations=7, patience=300, finalists=1, models=[model])
        path = session.start(
            str(problem), chosen, watchman, target="cpu", run_dir=tmp_path / "run", toolbox=nothing()
        )
    assert watchman.looked and not watchman.leaks
    assert not [file for file in path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    with populations.open(path) as run:
        assert populations.check(path) == []
        (repaired,) = made_by(run, "agent_repair")
        broken, draft = run.get(repaired.parents[0]), made_by(run, "agent_draft")[0]
        assert draft.status is Outcome.MEASURED
        assert (broken.operator, broken.status) == ("agent_mutate", Outcome.INCORRECT)
        assert repaired.status is Outcome.MEASURED
        (crossed,) = made_by(run, "agent_cross")
        assert crossed.status is Outcome.MEASURED
        assert {run.get(id).operator for id in crossed.parents} == {"agent_mutate"}
        assert {broken.id, repaired.id} < {step.birth.id for step in run.lineage(crossed.id)}
