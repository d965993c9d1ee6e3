"""The complete prompt of each agent for one real candidate, to be read: tests/prompts/*.txt.

After a change of a template or guide ``python tests/test_agents_prompts.py`` writes them anew: read the diff.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fitness import cpp_source
from fitness.lowering import source as lowering_source
from operators.agents import problem
from operators.agents.cases import WriteCases
from operators.agents.chat import Answer, Chat, Message, Tool, ToolResult
from operators.agents.context import AgentBrief, Parent, ShownCase, Told, Tried
from operators.agents.diagnose import Diagnose
from operators.agents.explore import Explore
from operators.agents.guides import guide, languages
from operators.agents.hearing import HIDDEN, told
from operators.agents.models import ModelSettings
from operators.agents.reflect import Reflect
from operators.agents.scripted import ScriptedChat
from operators.agents.writers import APPROACHES, WRITERS, Cross, Draft, Edit, Mutate, Repair, refused
from populations.kernel import Kernel
from populations.learned import Diagnosis, Lesson
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage, Timing, Verdict

ROOT = Path(__file__).parent.parent
PROMPTS = ROOT / "tests" / "prompts"
ROOMY = ModelSettings("reader", "http://127.0.0.1/v1", context=200_000)
SHOWN = ("256x4096", "2x17-spiky", "3x64-tiny", "24x1000-large")
HELD_OUT = ("1x1-normal", "5x1025-nonfinite", "3x7-uniform", "24x1000-large-2")


def seed(name: str) -> Kernel:
    text = (ROOT / "populations" / "seeds" / "softmax" / name).read_text()
    return Kernel(text, "cpp" if name.endswith(".cpp") else "triton")


def timed(median: float, baseline: float) -> Timing:
    speedup = baseline / median
    interval = (median * 0.98, median * 1.02)
    return Timing(
        "warm", median, interval, "eager", baseline, speedup, (speedup * 0.98, speedup * 1.02), 0.3, 0.01,
        0.3, 36.1, 0.02, (median,), (baseline,),
    )  # fmt: skip


def measured(median: float) -> Verdict:
    cases = (
        CaseVerdict(SHOWN[0], False, False, Outcome.MEASURED, None, 0.4, (timed(median, 363e-6),)),
        CaseVerdict(HELD_OUT[0], True, False, Outcome.MEASURED, None, 0.2, (timed(9e-6, 11e-6),)),
    )
    return Verdict(
        Outcome.MEASURED, Stage.TIMING, "measured", cases=cases, general=True, speedup=1.2, rank=0.2
    )


def wrong(case: str) -> Verdict:
    reason = f"case {case}: output 0 at [1, 16] is 0.25, not 0.5: 3.1e+04 times the bound"
    evidence = Evidence(case, 0, (1, 16), 0.25, 0.5, 0.25, 8e-6)
    failed = CaseVerdict(case, case in HELD_OUT, False, Outcome.INCORRECT, reason, 31250.0)
    return Verdict(Outcome.INCORRECT, Stage.SMOKE, reason, evidence, (failed,))


def heard(verdict: Verdict) -> Told:
    return told(verdict, SHOWN, HELD_OUT, {SHOWN[0]: 150e-6})


PLAIN = Parent(
    3,
    seed("plain.cpp"),
    "seed",
    "three passes a row",
    heard(measured(340e-6)),
    "vector_bytes: 32\ntext_bytes: 1432",
)
EXPERT = Parent(
    9,
    seed("expert.cpp"),
    "agent_mutate",
    "lanes and a polynomial",
    heard(measured(232e-6)),
    "vector_bytes: 64",
)
FAILED = Parent(12, seed("plain.cpp"), "agent_mutate", "one pass less", heard(wrong(SHOWN[1])))
BRIEF = AgentBrief(
    language="cpp",
    problem="softmax",
    summary="Softmax over each row of a matrix, as in attention scores.",
    reference=problem.shown((ROOT / "fitness" / "problems" / "softmax.py").read_text()),
    signature='extern "C" void kernel_function(\n'
    "    const float* x,\n    float* out,\n    const int64_t* shapes)",
    tolerance="softmax over dim -1",
    facts=(("cores", "2"), ("vector registers", "64 bytes (AVX-512)"), ("last-level cache", "32 MiB")),
    cases=tuple(
        ShownCase(name, (f"x: float32{shape}",), (f"out: float32{shape}",), data, name == SHOWN[0])
        for name, shape, data in (
            (SHOWN[0], "[256, 4096]", None), (SHOWN[1], "[2, 17]", "spiky"),
            (SHOWN[2], "[3, 64]", "tiny"), (SHOWN[3], "[24, 1000]", "large"),
        )
    ),
    floor="8.4 MB at 56 GB/s: 150 µs on 256x4096 (memory)",
    failures=(Tried(7, "fuse", "one loop instead of two", "slower: 0.93 of its parent"),
              Tried(8, "agent_mutate", "exp by a table", "incorrect at smoke")),
    lessons=(Lesson("A polynomial in base 2 beats libm's expf here.", (5, 9)),),
)  # fmt: skip
DIAGNOSIS = Diagnosis(
    "compute",
    ("2.3 times the floor, and expf is called for each element",),
    ("a polynomial of degree 5 in base 2",),
)
DIRECTION = (
    "explicit vectors: intrinsics, or types with a vector_size (not tried yet: no measured kernel does "
    "this and otherwise resembles the parent)"
)
RESULTS = (
    Tried(3, "seed", "three passes a row", "1.07 times the baseline's speed"),
    Tried(7, "fuse", "one loop instead of two", "1.00 times the baseline's speed, 0.93 times its parent's"),
    Tried(8, "agent_mutate", "exp by a table", f"incorrect at smoke: {HIDDEN}"),
    Tried(9, "agent_mutate", "lanes", "1.56 times the baseline's speed, 1.46 times its parent's"),
)
TRITON = replace(
    BRIEF,
    language="triton",
    signature="def kernel_function(x):  # x: bfloat16[8192, 8192] -> out: bfloat16[8192, 8192]",
    reference=problem.shown(
        (ROOT / "fitness" / "problems" / "softmax.py").read_text(), {"ROWS": 8192, "COLS": 8192, "BITS": 16}
    ),
    facts=(
        ("architecture", "sm_90 (NVIDIA H200)"),
        ("multiprocessors", "132"),
        ("shared memory", "227 KiB a program"),
    ),
    cases=(
        ShownCase("8192x8192", ("x: bfloat16[8192, 8192]",), ("out: bfloat16[8192, 8192]",), None, True),
        ShownCase("2x17-spiky", ("x: bfloat16[2, 17]",), ("out: bfloat16[2, 17]",), "spiky"),
    ),
    floor="268 MB at 4.0 TB/s: 67 µs on 8192x8192 (memory)",
    lessons=(),
    failures=(Tried(7, "agent_mutate", "a persistent grid", "slower: 0.97 of its parent"),),
    parents=(
        Parent(2, seed("online.py"), "seed", "two passes", None, "registers: 40\nspills: 0\nshared: 512"),
    ),
)


def looks(_: object) -> ToolResult:
    return ToolResult("nothing")


TOOLS = (
    Tool("check", "Build the source and check it on the shown cases.",
         {"type": "object", "properties": {"source": {"type": "string"}}, "required": ["source"]}, looks),
)  # fmt: skip


def of(parents: tuple[Parent, ...], **further: object) -> AgentBrief:
    return replace(BRIEF, parents=parents, **further)  # type: ignore[arg-type]


DRAFTING = Draft().prompt(of((), failures=(), direction=APPROACHES["cpp"][0]), ROOMY)
ENTRY = 'extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes)'
THREADS = f"#include <cstdint>\n#include <thread>\n\n{ENTRY} {{\n    // …\n}}\n"
DRAFTED, REFUSAL = f"Rationale: all the cores\n\n```cpp\n{THREADS}```\n", cpp_source.fault(THREADS, 3) or ""
AGENTS = {
    "draft": lambda chat: Draft()(of((), failures=(), direction=APPROACHES["cpp"][1]), chat),
    "mutate": lambda chat: Mutate()(of((replace(PLAIN, diagnosis=DIAGNOSIS),), direction=DIRECTION), chat),
    "mutate-triton": lambda chat: Mutate()(TRITON, chat),
    "edit": lambda chat: Edit()(of((PLAIN,)), chat),
    "cross": lambda chat: Cross()(of((PLAIN, replace(EXPERT, diagnosis=DIAGNOSIS)), failures=()), chat),
    "repair": lambda chat: Repair()(of((FAILED,), failures=()), chat),
    "refused": lambda chat: chat.ask(refused(DRAFTING.messages, Answer(DRAFTED), REFUSAL)),
    "diagnose": lambda chat: Diagnose()(of((PLAIN,)), chat),
    "cases": lambda chat: WriteCases(
        {"ROWS": 256, "COLS": 4096}, {"normal": "N(0, 1)", "ties": "many equal values"}
    )(of((PLAIN,)), chat),
    "reflect": lambda chat: Reflect(RESULTS, ("Two rows at a time hide the latency of memory.",))(
        of(()), chat
    ),
    "explore": lambda chat: Explore(TOOLS)(of((PLAIN,)), chat),
}


class Seen:
    """A chat that notes the tools it is offered."""

    def __init__(self) -> None:
        self._chat, self.tools = ScriptedChat(["nothing"], ROOMY), ()

    @property
    def settings(self) -> ModelSettings:
        return ROOMY

    def ask(self, messages: list[Message], tools: tuple[Tool, ...] = (), limit: int | None = None) -> Answer:
        self.tools = tools
        return self._chat.ask(messages, tools, limit)

    def text(self) -> str:
        (messages,) = self._chat.asked
        parts = [f"=== {message.role} ===\n{message.text}" for message in messages]
        parts += [f"=== tool ===\n{json.dumps(tool.to_json(), indent=1)}\n" for tool in self.tools]
        return "\n".join(parts)


def prompt(name: str) -> str:
    chat: Chat = Seen()
    AGENTS[name](chat)
    return chat.text()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("name", AGENTS)
def test_the_complete_prompt_is_the_one_that_was_read(name: str) -> None:
    assert prompt(name) == (PROMPTS / f"{name}.txt").read_text()


def test_every_prompt_has_its_file() -> None:
    assert {path.stem for path in PROMPTS.glob("*.txt")} == set(AGENTS)


@pytest.mark.parametrize("name", AGENTS)
def test_no_prompt_names_a_held_out_case(name: str) -> None:
    assert not [case for case in HELD_OUT if case in prompt(name).replace(SHOWN[3], "")]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_a_writer_takes_as_many_parents_as_it_says(writer: Mutate) -> None:
    with pytest.raises(ValueError, match="parents"):
        writer(of((PLAIN, PLAIN, PLAIN)), ScriptedChat([]))


def test_a_failing_held_out_case_is_told_by_its_stage_alone() -> None:
    found = heard(wrong(HELD_OUT[1]))
    assert (found.stage, found.reason, found.evidence, found.log) == (Stage.SMOKE, HIDDEN, (), "")
    chat = ScriptedChat(["nothing"], ROOMY)
    Repair()(of((replace(FAILED, told=found),)), chat)
    assert "Verdict: incorrect at stage smoke. a held-out case failed" in chat.asked[0][1].text
    assert "0.25" not in chat.asked[0][1].text


def test_a_crash_log_that_names_a_held_out_case_is_not_told() -> None:
    evidence = Evidence(log=f"case {HELD_OUT[2]}: allocates too much")
    assert heard(Verdict(Outcome.REJECTED, Stage.BUILD, "no", evidence)).log == ""
    assert heard(Verdict(Outcome.CRASHED, Stage.SEARCH_GATE, "died")).reason == HIDDEN


def test_a_failing_shown_case_is_told_precisely() -> None:
    found = heard(wrong(SHOWN[1]))
    assert found.evidence[:2] == ("case 2x17-spiky", "worst element: output 0 at [1, 16]")
    log = "kernel.cpp:3: error: expected ';'"
    assert heard(Verdict(Outcome.UNCOMPILABLE, Stage.BUILD, "g++ says no", Evidence(log=log))).log == log


def test_speeds_are_those_of_shown_cases() -> None:
    assert [speed.case for speed in heard(measured(340e-6)).speeds] == [SHOWN[0]]


def test_a_shape_at_which_a_kernel_is_not_general_stays_hidden_unless_shown() -> None:
    verdict = replace(measured(340e-6), general=False, not_general=f"case {HELD_OUT[1]} is wrong")
    assert heard(verdict).evidence == ("not general: fails at another shape",)
    verdict = replace(verdict, not_general=f"case {SHOWN[1]} is wrong")
    assert heard(verdict).evidence == (f"not general: case {SHOWN[1]} is wrong",)


def test_the_problem_is_shown_without_its_hooks() -> None:
    text = (
        '"""Doubles."""\nimport torch\nfrom secrets import shapes\nN = 4\nHIDDEN = [(7, 9)]\nUNUSED = 3\n\n'
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return twice(x)\n\n"
        "def twice(x):\n    return 2 * x\n\ndef get_inputs():\n    return [torch.randn(N)]\n\n"
        "def get_cases(seed):\n    return [{'constants': {'N': n}} for n, _ in HIDDEN + shapes]\n"
    )
    seen = problem.shown(text, {"N": 4096})
    assert "N = 4096" in seen and "def twice" in seen and "import torch" in seen
    assert not any(word in seen for word in ("get_cases", "HIDDEN", "shapes", "UNUSED"))
    assert compile(seen, "problem.py", "exec")
    assert problem.shown("def broken(") == ""


def test_each_language_has_a_guide_with_the_facts_in_its_contract() -> None:
    assert languages() == ("cpp", "triton")
    for language in languages():
        found = guide(language, {"cores": "2"})
        assert "- cores: 2" in found.contract and found.advice
    with pytest.raises(ValueError, match="cuda"):
        guide("cuda", {})


def test_the_guides_example_of_numbers_is_what_the_tuner_reads() -> None:
    from operators.tune import space

    contract = guide("triton", {}).contract
    assert set(space(contract.split("```python")[1].split("```")[0], "triton")) == {"BLOCK", "num_warps"}
    line = next(each for each in guide("cpp", {}).contract.split("`") if "// tune:" in each)
    assert space(line) == {"TILE": (64, (16, 32, 64, 128))}


def test_the_headers_that_the_guide_names_are_those_that_are_admitted() -> None:
    contract = guide("cpp", {}).contract
    allowed, refused = contract.split("- Only")[1].split("No files")
    named = [header for header in re.findall(r"<[a-z_.]+>", allowed) if header != "<standard>"]
    entry = 'extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {}'
    text = "\n".join(f"#include {header}" for header in named)
    assert len(named) >= 6 and cpp_source.fault(f"{text}\n{entry}", 3) is None
    assert "<thread>" in refused and "<thread>" in (cpp_source.fault(f"#include <thread>\n{entry}", 3) or "")


def test_a_host_function_that_keeps_to_the_guide_is_admitted() -> None:
    example = guide("triton", {}).contract.split("```python")[1].split("```")[0]
    constant = "LOG2_E = tl.constexpr(1.4426950408889634)"
    assert constant in guide("triton", {}).contract
    imports = "import functools\nimport math\nimport torch\nimport triton\nimport triton.language as tl\n"
    device = "@triton.jit\ndef k(x, out, n, BLOCK: tl.constexpr):\n    pass\n"
    host = "    out = torch.empty_like(x)\n    k[(1,)](x, out, x.numel(), **CONFIG)\n    return out\n"
    text = f"{imports}{constant}\n{example}\n{device}\ndef kernel_function(x):\n{host}"
    assert not isinstance(lowering_source.admit(Kernel(text, "triton")), Verdict)


if __name__ == "__main__":
    PROMPTS.mkdir(exist_ok=True)
    for each in AGENTS:
        (PROMPTS / f"{each}.txt").write_text(prompt(each))
