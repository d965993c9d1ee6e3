"""Agents in use: what comes of answers, failures, tools and budgets, and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from chat_server import serving
from test_agents_answers import CPP, EDIT, OTHER, fence
from test_agents_prompts import PLAIN, TOOLS, of

from operators.agents import chat, guides
from operators.agents.chat import Answer, Chat, Message, Tool, ToolCall, ToolResult
from operators.agents.client import Client
from operators.agents.errors import Broken, KeyRefused, RateLimited
from operators.agents.explore import GONE, Budget, Explore
from operators.agents.models import ModelSettings
from operators.agents.recorded import Answered, Asked, Failed, Record, Recorded, Replayed, dump, load
from operators.agents.scripted import ScriptedChat
from operators.agents.spent import Spent
from operators.agents.testing import ChatContract
from operators.agents.writers import Cross, Edit, Mutate
from populations.kernel import Kernel

PARENT = replace(PLAIN, kernel=Kernel(OTHER, "cpp"))
BRIEF = of((PARENT,))
SMALL = ModelSettings("small", "http://127.0.0.1/v1", price_in=1.0, price_out=2.0)


def test_a_child_has_its_source_its_reason_and_its_cost() -> None:
    spent = Spent(100, 50, attempts=2, seconds=3.0, usd=0.01)
    offer = Mutate()(BRIEF, ScriptedChat([Answer(f"Rationale: less\n{fence(CPP)}", spent=spent)], SMALL))
    assert offer.value is not None and offer.reason == "" and offer.model == "small"
    child = offer.value
    assert (child.kernel, child.operator, child.rationale) == (Kernel(CPP, "cpp"), "agent_mutate", "less")
    assert (offer.spent, child.usage) == (spent, spent.usage)


def test_an_unreadable_answer_is_a_still_birth_that_costs() -> None:
    offer = Mutate()(BRIEF, ScriptedChat(["no idea whatsoever"], SMALL))
    assert offer.value is None and offer.reason.startswith("there is no source") and offer.failure is None
    assert offer.spent.tokens > 0 and offer.spent.usd


@pytest.mark.parametrize("why", [RateLimited("busy", Spent(guessed_in=9, attempts=3)), KeyRefused("no")])
def test_a_failed_request_is_a_still_birth_that_names_the_failure(why: Broken) -> None:
    offer = Mutate()(BRIEF, ScriptedChat([why]))
    assert (offer.value, offer.reason, offer.failure, offer.spent) == (None, str(why), why, why.spent)


def test_an_edit_gives_the_edited_parent_and_a_whole_source_is_taken_too() -> None:
    edited = Edit()(BRIEF, ScriptedChat([EDIT])).value
    assert (
        edited is not None and "x[i] + x[i]" in edited.kernel.source and "TILE = 32" in edited.kernel.source
    )
    whole = Edit()(BRIEF, ScriptedChat([fence(CPP)])).value
    assert whole is not None and whole.kernel.source == CPP


def test_a_copy_of_either_parent_is_no_child() -> None:
    brief = of((PARENT, replace(PARENT, kernel=Kernel(CPP, "cpp"))))
    assert "unchanged" in Cross()(brief, ScriptedChat([fence(CPP)])).reason


def calls(*names: str, **arguments: Any) -> Answer:
    made = tuple(ToolCall(f"c{n}", name, json.dumps(arguments)) for n, name in enumerate(names))
    return Answer("", made, "tool_calls")


def test_the_model_may_try_things_before_it_hands_in() -> None:
    tried: list[Mapping[str, Any]] = []

    def check(arguments: Mapping[str, Any]) -> ToolResult:
        tried.append(arguments)
        return ToolResult("incorrect: case 2x17", 1.5)

    script = ScriptedChat([calls("check", source=CPP), calls("hand_in", source=CPP, rationale="checked")])
    offer = Explore([replace(TOOLS[0], call=check)])(BRIEF, script)
    assert offer.value is not None and (offer.value.operator, offer.value.rationale) == (
        "agent_explore",
        "checked",
    )
    assert tried == [{"source": CPP}]
    said = script.asked[1][-1]
    assert said.role == "tool" and said.text.startswith("incorrect: case 2x17\n[left: 7 turns")
    assert "58 s of the device" in said.text
    assert offer.spent.attempts == 2


def test_a_source_in_the_text_counts_as_handed_in() -> None:
    offer = Explore(TOOLS)(BRIEF, ScriptedChat([f"Rationale: sure\n{fence(CPP)}"]))
    assert offer.value is not None and offer.value.kernel.source == CPP


@pytest.mark.parametrize("budget", [Budget(turns=3), Budget(tokens=1), Budget(device_s=1.0)])
def test_at_the_end_of_a_budget_it_is_asked_once_more_without_tools(budget: Budget) -> None:
    last: list[Sequence[Message]] = []

    def reply(messages: Sequence[Message]) -> Answer | str:
        if "budget is spent" in messages[-1].text:
            last.append(messages)
            return fence(CPP)
        return calls("check", source=CPP)

    tool = replace(TOOLS[0], call=lambda _: ToolResult("slow", 0.6))
    script = ScriptedChat(reply)
    offer = Explore([tool], budget)(BRIEF, script)
    assert offer.value is not None and len(last) == 1
    assert len(script.asked) <= budget.turns + 1


def test_calls_that_cannot_be_meant_are_answered_and_never_run() -> None:
    def never(_: Mapping[str, Any]) -> ToolResult:
        raise AssertionError

    made = [("rm", "{}"), ("check", "{"), ("check", "[]"), ("check", "{}"),
            ("hand_in", '{"source": "x", "rationale": ""}')]  # fmt: skip
    odd = Answer("", tuple(ToolCall(str(n), *call) for n, call in enumerate(made)))
    script = ScriptedChat([odd, "I give up"])
    offer = Explore([replace(TOOLS[0], call=never)])(BRIEF, script)
    assert offer.value is None and offer.reason.startswith("there is no source")
    texts = [message.text for message in script.asked[1] if message.role == "tool"]
    assert [text.split()[0] for text in texts] == ["There", "The", "The", "The", "Not"]


def test_a_long_conversation_loses_its_oldest_results_and_still_fits() -> None:
    small = ModelSettings("small", "http://127.0.0.1/v1", context=10_000, max_output=500)
    tool = replace(TOOLS[0], call=lambda _: ToolResult("word " * 1000))
    script = ScriptedChat([*[calls("check", source="x")] * 6, fence(CPP)], small)
    offer = Explore([tool])(BRIEF, script)
    assert offer.value is not None
    assert all(chat.size(messages, [tool]) <= small.room for messages in script.asked)
    results = [message.text for message in script.asked[-1] if message.role == "tool"]
    assert results[0] == GONE and results[-1] != GONE


def test_a_failure_in_the_middle_keeps_what_was_spent() -> None:
    answer = replace(calls("check", source=CPP), spent=Spent(10, 5, attempts=1))
    offer = Explore(TOOLS)(BRIEF, ScriptedChat([answer, Broken("gone", Spent(guessed_in=7, attempts=3))]))
    assert (offer.value, offer.reason) == (None, "gone")
    assert (offer.spent.tokens, offer.spent.attempts) == (22, 4)


def test_the_guide_is_a_tool_too() -> None:
    script = ScriptedChat([calls("read_guide"), fence(CPP)])
    Explore([guides.tool("cpp", {"cores": "2"})])(BRIEF, script)
    assert "## Contract" in script.asked[1][-1].text and "- cores: 2" in script.asked[1][-1].text


def test_a_tool_may_not_take_the_name_that_ends_the_conversation() -> None:
    with pytest.raises(ValueError, match="hand_in"):
        Explore([replace(TOOLS[0], name="hand_in")])


def test_a_request_is_told_before_it_is_sent_and_its_answer_before_it_is_used() -> None:
    told: list[Record] = []
    seen: list[int] = []

    def reply(_: Sequence[Message]) -> str:
        seen.append(len(told))
        return fence(CPP)

    Mutate()(BRIEF, Recorded(ScriptedChat(reply, SMALL), told.append, "17"))
    asked, answered = told
    assert seen == [1] and isinstance(asked, Asked) and isinstance(answered, Answered)
    assert (asked.call, answered.call, asked.key) == ("17.1", "17.1", answered.key)
    assert asked.reserved.usd and asked.reserved.tokens >= answered.answer.spent.tokens


def test_a_conversation_is_replayed_from_its_records_alone() -> None:
    told: list[Record] = []
    replies = [calls("check", source=CPP), Broken("gone"), fence(CPP)]
    live = Recorded(ScriptedChat(replies, SMALL), told.append, "3")
    first, second = Explore(TOOLS)(BRIEF, live), Mutate()(BRIEF, live)
    again = Replayed(SMALL, [load(json.loads(json.dumps(dump(record)))) for record in told])
    replayed = Explore(TOOLS)(BRIEF, again), Mutate()(BRIEF, again)
    assert [(each.value, each.reason, each.spent) for each in replayed] == [
        (each.value, each.reason, each.spent) for each in (first, second)
    ]
    assert any(isinstance(record, Failed) for record in told)
    assert Mutate()(BRIEF, again).reason == "no answer to this request was recorded"


def test_messages_survive_json() -> None:
    messages = (Message("assistant", "x", (ToolCall("1", "a", "{}"),)), Message("tool", "y", answers="1"))
    assert chat.from_json(json.loads(json.dumps(chat.to_json(messages)))) == messages


def test_costs_add_up_and_an_unknown_price_stays_unknown() -> None:
    assert Spent(1, 2, usd=0.5) + Spent(3, 4, guessed_in=5, usd=0.25) == Spent(4, 6, guessed_in=5, usd=0.75)
    assert (Spent(usd=None) + Spent(usd=1.0)).usd is None


def test_tools_are_told_without_what_they_do() -> None:
    tool = Tool("t", "does", {"type": "object"}, lambda _: ToolResult(""))
    assert tool.to_json() == {"name": "t", "description": "does", "parameters": {"type": "object"}}


class TestScripted(ChatContract):
    @pytest.fixture
    def chat(self) -> Chat:
        return ScriptedChat(lambda _: "ready", SMALL)


class TestRecorded(ChatContract):
    @pytest.fixture
    def chat(self) -> Chat:
        return Recorded(ScriptedChat(lambda _: "ready", SMALL), lambda _: None, "1")


class TestClient(ChatContract):
    @pytest.fixture
    def chat(self) -> Iterator[Chat]:
        with serving(lambda _: "ready") as server, Client(ModelSettings("m", server.url), {}) as client:
            yield client
