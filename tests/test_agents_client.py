"""The client against a real server on a real socket: what it answers and costs, and where the key goes."""

from __future__ import annotations

import json
import logging
import pickle
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from chat_server import ChatServer, serving
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from test_agents_answers import JSON

from operators.agents import errors, replies
from operators.agents.chat import Message, Tool, ToolResult
from operators.agents.client import Client, reservation
from operators.agents.errors import ChatError
from operators.agents.models import ModelSettings
from operators.agents.probe import probe
from operators.agents.recorded import Answered, Record, Recorded, dump
from operators.agents.secret import Secret

KEY = "sk-test-0123456789/abc+def"
ENVIRONMENT = {"THE_KEY": KEY, "OPENAI_API_KEY": "sk-of-another-endpoint", "OPENAI_ORG_ID": "org-secret"}
QUESTION = [Message("system", "be brief"), Message("user", "say hello to the world")]


CLIENTS = ExitStack()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    CLIENTS.pop_all().close()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as chat:
        yield chat


def settings(server: ChatServer, **further: object) -> ModelSettings:
    given = {"key_env": "THE_KEY", "price_in": 2.0, "price_out": 8.0, "timeout_s": 5.0, **further}
    return ModelSettings("tiny", server.url, **given)  # type: ignore[arg-type]


def client(server: ChatServer, **further: object) -> Client:
    """One that is closed with the test."""
    return CLIENTS.enter_context(Client(settings(server, **further), ENVIRONMENT))


def failure(server: ChatServer, **further: object) -> ChatError:
    with pytest.raises(ChatError) as caught:
        client(server, **further).ask(QUESTION)
    return caught.value


def test_an_answer_costs_what_the_server_counted(server: ChatServer) -> None:
    answer = client(server).ask(QUESTION)
    assert (answer.text, answer.finish, answer.spent.attempts) == ("hello", "stop", 1)
    assert (answer.spent.tokens_in, answer.spent.tokens_out) == (server.read, server.written) == (7, 1)
    assert answer.spent.usd == pytest.approx((7 * 2 + 1 * 8) / 1e6)
    assert not answer.spent.estimated


def test_what_was_cached_has_its_own_price() -> None:
    model = ModelSettings("m", price_in=2.0, price_out=8.0, price_cached=0.5)
    assert model.cost(1000, 10, cached=600) == pytest.approx((400 * 2 + 600 * 0.5 + 10 * 8) / 1e6)


@pytest.mark.parametrize("fault", ["busy", "broken", "drop", "truncate"])
def test_a_fault_is_retried_and_each_attempt_counted(server: ChatServer, fault: str) -> None:
    server.faults = [fault, fault]
    answer = client(server).ask(QUESTION)
    reserved = reservation(settings(server), QUESTION)
    assert (answer.text, answer.spent.attempts, len(server.requests)) == ("hello", 3, 3)
    assert (answer.spent.tokens_in, answer.spent.tokens_out) == (server.read, server.written)
    assert answer.spent.estimated == (fault != "busy")
    assert answer.spent.guessed_in <= 2 * reserved.guessed_in
    assert answer.spent.guessed_out <= 2 * reserved.guessed_out


KINDS = {
    "busy": errors.RateLimited,
    "broken": errors.ServerFault,
    "drop": errors.Dropped,
    "truncate": errors.Dropped,
    "half": errors.Garbled,
    "garbage": errors.Garbled,
    "schema": errors.Garbled,
    "empty_choices": errors.Garbled,
    "refused": errors.KeyRefused,
    "unknown": errors.UnknownModel,
    "too_long": errors.OutOfContext,
    "bad_request": errors.Refused,
    "elsewhere": errors.Redirected,
    "flood": errors.TooLarge,
    "hang": errors.TimedOut,
    "drip": errors.TimedOut,
}


@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_that_stays_is_one_line_within_its_reservation(server: ChatServer, fault: str) -> None:
    server.faults = [fault] * 9
    why = failure(server, retries=1, timeout_s=0.5)
    reserved = reservation(settings(server), QUESTION)
    assert type(why) is KINDS[fault]
    assert "\n" not in str(why) and len(str(why)) < 500
    assert why.spent.attempts == len(server.requests)
    assert why.spent.tokens <= why.spent.attempts * reserved.tokens
    assert why.spent.usd is not None and reserved.usd is not None
    assert why.spent.usd <= why.spent.attempts * reserved.usd + 1e-12
    assert why.spent.tokens_in == why.spent.tokens_out == 0


@pytest.mark.parametrize("fault", ["busy", "refused", "unknown", "bad_request"])
def test_what_the_server_turned_away_costs_nothing(server: ChatServer, fault: str) -> None:
    server.faults = [fault] * 9
    assert failure(server, retries=1).spent.tokens == 0


@pytest.mark.parametrize("fault", KINDS)
def test_no_error_holds_the_key(server: ChatServer, fault: str) -> None:
    server.faults = [fault] * 9
    why = failure(server, retries=0, timeout_s=0.5)
    assert why.__cause__ is None and why.__context__ is None
    frames = traceback.TracebackException.from_exception(why)
    shown = "".join([str(why), repr(why), repr(vars(why)), *frames.format()])
    assert KEY not in shown and "another-endpoint" not in shown


def test_an_echoed_key_is_taken_out_of_the_answer_and_of_the_records(server: ChatServer) -> None:
    server.faults = ["echo"]
    records: list[Record] = []
    chat = client(server)
    answer = Recorded(chat, records.append, "1").ask(QUESTION)
    written = json.dumps([dump(record) for record in records])
    assert "Bearer [key]" in answer.text
    assert KEY not in answer.text + repr(answer) + repr(records) + written + repr(chat) + repr(chat.settings)


def test_no_log_line_holds_the_key(server: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults = ["busy", "broken", "echo"]
    client(server).ask(QUESTION)
    assert caplog.records and KEY not in caplog.text


def test_the_key_goes_as_a_bearer_and_nothing_else_of_the_environment_goes(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-endpoint")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-of-another")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: gateway-secret")
    client(server).ask(QUESTION)
    with Client(replace(settings(server), key_env=None), {}) as keyless:
        keyless.ask(QUESTION)
    with_key, without = (headers for headers, _ in server.requests)
    assert with_key["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in without
    assert "secret" not in str(server.requests) and "another" not in str(server.requests)


def test_a_redirect_is_not_followed(server: ChatServer) -> None:
    with serving() as other:
        server.faults = ["elsewhere"]
        assert "final address" in str(failure(server))
        assert other.requests == []


@pytest.mark.parametrize("value", ["", "  ", "two words", "sk-\u00e9t\u00e9", "line\nbreak"])
def test_what_is_no_key_is_said_without_it(server: ChatServer, value: str) -> None:
    with pytest.raises(errors.NoKey) as caught:
        Client(settings(server), {"THE_KEY": value})
    assert "THE_KEY" in str(caught.value) and (not value.strip() or value not in str(caught.value))


def test_a_secret_is_neither_shown_nor_pickled() -> None:
    assert KEY not in repr(Secret(KEY)) + str(Secret(KEY))
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with serving() as gone:
        pass
    why = failure(gone, retries=0)
    assert type(why) is errors.Unreachable and why.spent.tokens == 0


def test_an_answer_without_a_count_is_charged_as_reserved(server: ChatServer) -> None:
    server.faults = ["no_usage"]
    answer = client(server).ask(QUESTION)
    reserved = reservation(settings(server), QUESTION)
    assert answer.text == "hello" and answer.spent.estimated
    assert (answer.spent.guessed_in, answer.spent.guessed_out) == (reserved.guessed_in, reserved.guessed_out)


def test_an_answer_of_fifty_thousand_tokens_is_read_and_counted(server: ChatServer) -> None:
    server.faults = ["long"]
    assert client(server).ask(QUESTION).spent.tokens_out == server.written == 50_000


def test_a_prompt_beyond_the_context_is_not_sent(server: ChatServer) -> None:
    with pytest.raises(errors.OutOfContext):
        client(server, context=4096, max_output=1024).ask([Message("user", "word " * 9000)])
    assert server.requests == []


def test_many_threads_share_a_client_and_the_totals_agree(server: ChatServer) -> None:
    server.faults = ["slow", "busy", "slow", "broken", "slow", "drop"] * 3
    chat, spent = client(server, parallel=3, retries=9), []

    def ask() -> None:
        spent.append(chat.ask(QUESTION).spent)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each.attempts for each in spent) == len(server.requests)
    assert sum(each.tokens_in for each in spent) == server.read
    assert sum(each.tokens_out for each in spent) == server.written


def test_function_calls_come_back_as_calls() -> None:
    function = {"name": "look", "arguments": '{"id": 3}'}
    call = {"id": "c1", "type": "function", "function": function}
    tool = Tool("look", "looks", {"type": "object"}, lambda _: ToolResult(""))
    with serving(lambda _: {"role": "assistant", "content": None, "tool_calls": [call]}) as server:
        with Client(settings(server), ENVIRONMENT) as chat:
            answer = chat.ask(QUESTION, (tool,))
        assert [(c.id, c.name, c.arguments) for c in answer.calls] == [("c1", "look", '{"id": 3}')]
        assert server.requests[0][1]["tools"][0]["function"]["name"] == "look"


def test_settings_are_sent_only_where_they_are_set(server: ChatServer) -> None:
    client(server).ask(QUESTION, limit=9)
    client(server, temperature=0.5, effort="low", system="developer").ask(QUESTION)
    (_, plain), (_, rich) = server.requests
    assert plain["max_tokens"] == 9 and not {"temperature", "reasoning_effort", "tools"} & set(plain)
    assert (rich["temperature"], rich["reasoning_effort"]) == (0.5, "low")
    assert rich["messages"][0]["role"] == "developer"


def test_instructions_open_the_users_turn_for_a_model_without_a_role_for_them(server: ChatServer) -> None:
    client(server, system="user").ask(QUESTION)
    said = server.requests[0][1]["messages"]
    assert said == [{"role": "user", "content": "be brief\nsay hello to the world"}]


def test_a_prompt_that_utf8_cannot_hold_is_sent_all_the_same(server: ChatServer) -> None:
    assert client(server).ask([Message("user", "half a pair: \ud800")]).text == "hello"


def test_an_error_sent_as_an_answer_is_told() -> None:
    with pytest.raises(errors.Garbled, match="an error: out of memory"):
        replies.read('{"error": {"message": "out of memory"}}', Secret())


@settings_of_hypothesis(deadline=None)
@given(JSON, JSON, JSON)
def test_no_body_whatever_raises_anything_but_garbled(one: object, other: object, third: object) -> None:
    message = {"content": one, "tool_calls": [other, {"function": third}], "refusal": third}
    choice = {"message": message, "finish_reason": other}
    usage = {"prompt_tokens": one, "completion_tokens": other, "prompt_tokens_details": third}
    for body in (
        one,
        {"choices": [choice], "usage": usage, "model": third},
        {"choices": other, "error": one},
    ):
        try:
            answer = replies.read(json.dumps(body), Secret(KEY))
        except errors.Garbled:
            continue
        json.dumps(dump(Answered("1", "", answer)), ensure_ascii=False).encode()


def test_a_probe_says_what_works(server: ChatServer) -> None:
    assert probe(settings(server), ENVIRONMENT).says.startswith("answers in")
    server.faults = ["refused"]
    found = probe(settings(server), ENVIRONMENT)
    assert not found.works and isinstance(found.failure, errors.KeyRefused) and KEY not in found.says
    assert isinstance(probe(settings(server), {}).failure, errors.NoKey)


@pytest.mark.parametrize(
    ("text", "name", "url", "key"),
    [
        ("gpt-5", "gpt-5", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("local/qwen@http://127.0.0.1:8000/v1", "local/qwen", "http://127.0.0.1:8000/v1", None),
        ("a@b@https://host/v1/", "a@b", "https://host/v1", None),
    ],
)
def test_a_model_is_named_with_or_without_an_address(text: str, name: str, url: str, key: str | None) -> None:
    model = ModelSettings.parse(text)
    assert (model.name, model.url, model.key_env) == (name, url, key)


@pytest.mark.parametrize(
    "text",
    ["", "@http://host/v1", "m@ftp://host", "m@http://", "m@http://user:word@host/v1", "m@http://host/v1?key=1",
     "m@http://ho st/v1", "m@http://host:port/v1", "m@http://[::1/v1"],
)  # fmt: skip
def test_a_model_that_cannot_be_meant_is_one_line(text: str) -> None:
    with pytest.raises(errors.BadModel) as caught:
        ModelSettings.parse(text)
    assert "user:word" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"price_in": 1.0}, {"price_in": -1.0, "price_out": 1.0}, {"price_in": float("nan"), "price_out": 1.0},
     {"context": 100, "max_output": 100}, {"parallel": 0}, {"retries": -1}, {"timeout_s": 0.0},
     {"system": "boss"}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(errors.BadModel):
        ModelSettings("m", **wrong)  # type: ignore[arg-type]
