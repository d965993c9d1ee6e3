"""A search in which a model tries kernels before it hands one in, against a server on a real socket."""

# ruff: noqa: ARG002 -- stand-ins take what the seam hands them

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Body, ChatServer, serving
from test_evo_agents import Parts, PartsBeside, events, kernel, nothing, says, speak

import evo
import populations
from evo import session
from evo.progress import Silent
from evo.settings import SettingsError, settings
from operators.agents.explore import TRY, Explore
from populations import Outcome
from populations.check import check
from populations.events import Certainty, Event, Judged, Proposed, Reserved, Settled, Stillborn
from populations.state import State

TARGETS = {each.__name__: each for each in (Parts, PartsBeside)}
HERE = __name__


def call(name: str, number: int = 0, **arguments: Any) -> dict[str, Any]:
    return {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def calls(*made: dict[str, Any]) -> Body:
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


def explorer(body: Body) -> str | Body:
    """Reads its parent, tries a broken kernel, then a fast one; hands in the fast one with LEAN in it, if it
    was told what came of both."""
    heard = [each["content"] for each in body["messages"] if each["role"] == "tool"]
    if "tools" not in body:
        return "ready"
    if not heard:
        return calls(call("look_at", kernel=1), call("read_guide", 1), call("look_at", 2, kernel=999))
    if len(heard) == 3:
        assert "Kernel: kernel 1" in heard[0] and "kernel_function" in heard[0]
        assert "no kernel 999" in heard[2]
        return calls(
            call("try_kernel", source=kernel("BROKEN"), rationale="a guess"),
            call("try_kernel", 1, source=f"```cpp\n{kernel('WHOLE', 'FAST')}```", rationale="wider lanes"),
            call("try_kernel", 2, source=kernel("WHOLE", "FAST"), rationale="once more"),
        )
    seen = "got 0.25, expected 0.5" in heard[3] and "speed-up 1.30" in heard[4] and "Not tried" in heard[5]
    parts = ("WHOLE", "FAST", "LEAN") if seen else ("NOTHING",)
    return calls(call("hand_in", source=kernel(*parts), rationale="what the tries say"))


ALONE = {f"agent_{name}": 0.0 for name in ("draft", "mutate", "edit", "cross", "repair")}


def chosen(server: ChatServer, **more: Any) -> dict[str, Any]:
    models = [speak(server, parallel=1, tools=True)]
    limits = {"evaluations": 4, "patience": 20, "counsel_share": 0.0}
    return {"models": models, "weights": ALONE, **limits, **more}


def seed(folder: Path) -> Path:
    (folder / "seed.cpp").write_text(kernel("PLAIN"))
    return folder / "seed.cpp"


def search(folder: Path, server: ChatServer, target: str = "Parts", **more: Any) -> populations.Run:
    where = {"run_dir": folder / "run", "seeds": [seed(folder)], "toolbox": nothing()}
    return evo.search("instant", f"{HERE}:{target}", **where, **chosen(server, **more))


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_reads_tries_hears_and_hands_in_what_the_tries_support(target: str, tmp_path: Path) -> None:
    with serving(explorer) as server, search(tmp_path, server, target) as run:
        born = [each for each in events(run, Proposed) if each.model]
        assert [each.operator for each in born] == [TRY, TRY, Explore.name]
        verdicts = {each.id: each.verdict for each in events(run, Judged)}
        assert [verdicts[each.id].status for each in born] == [
            Outcome.INCORRECT, Outcome.MEASURED, Outcome.MEASURED,
        ]  # fmt: skip
        assert [each.call for each in born] == ["2.2", "2.2", "2.3"]
        (refused,) = [each for each in events(run, Stillborn) if each.operator == TRY]
        assert refused.reason == "a duplicate of an earlier kernel"
        assert run.best is not None and run.best.id == born[-1].id
        assert not check(run.path)
        asked = [body for _, body in server.requests if "tools" in body]
        assert {tool["function"]["name"] for tool in asked[0]["tools"]} == {
            "try_kernel", "look_at", "read_guide", "hand_in",
        }  # fmt: skip


def tools_of(body: Body) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ())]


def stops(name: str, run: populations.Run) -> None:
    """What every test of an odd conversation ends with."""
    assert check(run.path) == [], name
    assert run.evaluations <= 4


@pytest.mark.parametrize(
    "last", [("Judged", 2), ("Proposed", 2), ("Settled", "2.1"), ("Settled", "2.2"), ("Reserved", "2.3")]
)
def test_a_killed_conversation_goes_on_where_it_was(last: tuple[str, int | str], tmp_path: Path) -> None:
    path = tmp_path / "run"

    class Killed(BaseException):
        """As a kill would: nothing more is logged."""

    class Impatient(Silent):
        def told(self, event: Event, state: State) -> None:
            if (type(event).__name__, getattr(event, "id", getattr(event, "call", None))) == last:
                raise Killed

    with serving(explorer) as server:
        given = settings(**chosen(server))
        where: dict[str, Any] = {"target": f"{HERE}:Parts", "run_dir": path, "toolbox": nothing()}
        with pytest.raises(Killed):
            session.start("instant", given, Impatient(), seeds=[seed(tmp_path)], **where)
        session.resume(path, Silent(), nothing())
        with populations.open(path) as run:
            stops(str(last), run)
            born = [each.operator for each in events(run, Proposed) if each.model]
            lost = [each for each in events(run, Settled) if each.certainty is Certainty.UNKNOWN]
            tries = [member.kernel.source for member in run.individuals() if member.operator == TRY]
            assert len(tries) == len(set(tries)) == 2
            if last[0] == "Reserved":  # nobody knows what came of that turn: the conversation is given up
                assert [each.call for each in lost] == ["2.3"]
            else:
                assert (born, lost) == ([TRY, TRY, Explore.name], [])


@pytest.mark.parametrize("fault", ["garbage", "broken", "drop"])
def test_a_turn_that_fails_ends_the_conversation_and_costs_no_run(fault: str, tmp_path: Path) -> None:
    def breaking(body: Body) -> str | Body:
        made = explorer(body)
        if len(body["messages"]) == 2 and "tools" in body:
            server.faults = [fault, fault]
        return made

    with serving(breaking) as server, search(tmp_path, server, evaluations=3, patience=10) as run:
        stops(fault, run)
        ends = [each for each in events(run, Stillborn) if each.operator == Explore.name]
        assert ends[0].call is not None and ends[0].call.endswith(".2")


def test_at_the_end_of_its_turns_a_model_is_asked_once_more_without_tools(tmp_path: Path) -> None:
    without: list[Body] = []

    def idle(body: Body) -> str | Body:
        if len(body["messages"]) < 3 or "budget is spent" not in body["messages"][-1]["content"]:
            return calls(call("read_guide")) if "tools" in body else "ready"
        without.append(body)
        return says("the best that I have", "WHOLE", "FAST")

    with serving(idle) as server, search(tmp_path, server, evaluations=2) as run:
        stops("idle", run)
        assert [each.operator for each in events(run, Proposed) if each.model] == [Explore.name]
        assert len(without) == 1 and not tools_of(without[0])


def test_a_model_without_tools_is_never_offered_any(tmp_path: Path) -> None:
    with serving(explorer) as server:
        models = [speak(server, parallel=1)]
        with search(tmp_path, server, models=models, patience=5) as run:
            assert not [each for each in events(run, Reserved) if each.operator == Explore.name]
        assert not any(map(tools_of, (body for _, body in server.requests)))


def test_tools_is_a_yes_or_no_and_nothing_else_is(tmp_path: Path) -> None:
    file = tmp_path / "evo.toml"
    wrong = {"context = true": "no yes or no", 'tools = "often"': "tools"}
    for line, ends in {"tools = true": None, **wrong}.items():
        file.write_text(f'[[models]]\nname = "m"\nurl = "http://127.0.0.1/v1"\n{line}\n')
        if ends is None:
            assert settings(file=file).models[0].tools
        else:
            with pytest.raises(SettingsError, match=ends):
                settings(file=file)
