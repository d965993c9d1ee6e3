"""No prompt exceeds its model's context; what was left out is recorded, in the declared order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_agents_prompts import BRIEF, DIAGNOSIS, FAILED, PLAIN, heard, of

from operators.agents import chat
from operators.agents.context import Tried
from operators.agents.fitting import CUTS
from operators.agents.models import ModelSettings
from operators.agents.scripted import ScriptedChat
from operators.agents.writers import Draft, Mutate, Repair
from populations.kernel import Kernel
from populations.learned import Lesson
from populations.verdict import Evidence, Outcome, Stage, Verdict

FULL = replace(
    of((replace(PLAIN, diagnosis=DIAGNOSIS),), direction="fewer passes"),
    failures=tuple(Tried(n, "agent_mutate", f"idea {n} " * 9, "slower") for n in range(30)),
    lessons=tuple(Lesson(f"lesson {n} " * 9, (1, 2)) for n in range(30)),
)


def model(room: int) -> ModelSettings:
    return ModelSettings("small", "http://127.0.0.1/v1", context=room + 1000, max_output=1000)


@settings(deadline=None)
@given(st.integers(1, 20_000), st.integers(0, 3000))
def test_no_prompt_exceeds_its_context(room: int, length: int) -> None:
    source = PLAIN.kernel.source + "// more\n" * length
    brief = replace(FULL, parents=(replace(PLAIN, kernel=Kernel(source, "cpp")),))
    script = ScriptedChat(["nothing"], model(room))
    offer = Mutate()(brief, script)
    if script.asked:
        assert chat.size(script.asked[0]) <= room
        assert source.strip() in script.asked[0][1].text
    else:
        assert "has room for" in offer.reason and offer.spent.attempts == 0


def test_what_is_left_out_follows_the_declared_order_and_grows_as_room_shrinks() -> None:
    order, longest = [cut.name for cut in CUTS], 0
    for room in range(12_000, 500, -100):
        script = ScriptedChat(["nothing"], model(room))
        left_out = Mutate()(FULL, script).left_out
        assert list(left_out) == [name for name in order if name in left_out]
        assert len(left_out) >= longest or not script.asked
        longest = max(longest, len(left_out))
    assert longest >= 8


def test_nothing_is_left_out_where_all_fits() -> None:
    assert Mutate()(FULL, ScriptedChat(["nothing"], model(100_000))).left_out == ()


def test_a_draft_keeps_the_reference_and_a_repair_its_evidence() -> None:
    for room in range(500, 6000, 250):
        script = ScriptedChat(["nothing", "nothing"], model(room))
        drafted = Draft()(replace(BRIEF, direction="one pass"), script)
        assert "the reference" not in drafted.left_out
        repaired = Repair()(of((FAILED,)), script)
        assert not {"the reference", "cases that are not timed"} & set(repaired.left_out)
        for messages in script.asked:
            assert "class Model" in messages[1].text
        if repaired.spent.attempts:
            assert "worst element: output 0 at [1, 16]" in script.asked[-1][1].text


def test_the_middle_of_a_long_log_goes_before_its_ends() -> None:
    log = "first error\n" + "note: x\n" * 2000 + "last line"
    failed = heard(Verdict(Outcome.UNCOMPILABLE, Stage.BUILD, "g++ says no", Evidence(log=log)))
    script = ScriptedChat(["nothing"], model(6000))
    offer = Repair()(of((replace(FAILED, told=failed),)), script)
    assert "the middle of long logs" in offer.left_out
    assert "first error" in script.asked[0][1].text and "last line" in script.asked[0][1].text


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.name)
def test_each_cut_makes_the_prompt_shorter_or_changes_nothing(cut) -> None:  # type: ignore[no-untyped-def]
    from operators.agents import prompts

    assert chat.size(prompts.conversation("mutate", cut.apply(FULL))) <= chat.size(
        prompts.conversation("mutate", FULL)
    )
