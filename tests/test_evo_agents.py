"""A search with agents, against a server on a real socket that answers from the prompt."""

# ruff: noqa: ARG002, ARG005 -- stand-ins take what the seam hands them
from __future__ import annotations

import json
import threading
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Body, ChatServer, serving
from deap import base
from test_evo_search import SEED

import evo
import populations
from evo import doctor, session
from evo.command import run_command_line
from evo.progress import Silent
from evo.settings import settings
from fitness.target import Admission, Built
from fitness.testing import InstantTarget
from operators.agents.models import ModelSettings
from populations import Outcome, Verdict
from populations.events import Certainty, Event, Proposed, Reserved, Settled, Stillborn
from populations.kernel import Kernel
from populations.run import Member
from populations.state import State
from populations.verdict import CaseVerdict, Evidence, Stage

HERE = __name__
KEY = "sk-nobody-may-see-this-0123456789"


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

    def gain(self, source: str) -> float:
        return 0.3 * sum(part in source for part in ("FAST", "LEAN"))

    def _judged(self, built: Built, verdict: Verdict) -> Verdict:
        source = built.kernel.source
        if "BROKEN" in source:
            name = self.card.given.name
            reason = f"case {name}: output 0 at [1, 16] is 0.25, not 0.5"
            case = CaseVerdict(name, False, False, Outcome.INCORRECT, reason, 31250.0)
            evidence = Evidence(name, 0, (1, 16), 0.25, 0.5, 0.25, 8e-6)
            return Verdict(Outcome.INCORRECT, Stage.SMOKE, reason, evidence, (case,))
        gain = self.gain(source)
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
    if "holds this kernel back" in task:
        return '{"bottleneck": "cache", "prescriptions": ["fewer loads"]}'
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


class Strict(Parts):
    """Admits no kernel with a part that is BANNED."""

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        if "BANNED" in kernel.source:
            return Verdict(Outcome.REJECTED, Stage.ADMIT, "the source may use nothing that is BANNED")
        return super().admit(kernel)


@pytest.mark.parametrize("mended", [True, False])
def test_a_source_that_is_refused_before_it_is_built_goes_back_to_its_author_once(
    tmp_path: Path, mended: bool
) -> None:
    def careless(body: Body) -> str:
        """Uses what is BANNED until it is told, or even then."""
        *before, last = body["messages"]
        if len(before) <= 1:
            return says("a first try", "BANNED")
        assert "refused before it was built: the source may use nothing that is BANNED" in last["content"]
        assert "static int BANNED;" in before[-1]["content"] and "# Your task" in before[1]["content"]
        return says("without it", "PLAIN" if mended else "BANNED")

    limits = {"evaluations": 1, "patience": 5, "toolbox": nothing()}
    with serving(careless) as server, search(tmp_path, server, "Strict", **limits) as run:
        mending = [each for each in events(run, Reserved) if each.mends]
        refused = [each.call for each in events(run, Stillborn) if each.refused]
        again = [each.mends for each in mending]
        assert again and len(again) == len(set(again)) and set(again) <= set(refused)
        assert not {each.call for each in mending} & set(again)
        assert [member.rationale for member in run.individuals()] == ["without it"] * mended
        assert populations.check(run.path) == []


def test_completed_answers_cost_what_the_server_counted(tmp_path: Path) -> None:
    with serving(author) as server, search(tmp_path, server, toolbox=nothing()) as run:
        settled = events(run, Settled)
        counted = [each for each in settled if each.certainty is Certainty.COUNTED]
        unread = len(server.requests) - len(counted)
        assert run.ledger()["tokens"] == sum(each.tokens for each in settled)
        assert unread == 0
        assert sum(each.tokens for each in counted) == server.read + server.written


FAULTS = [
    "busy", "broken", "drop", "truncate", "half", "garbage", "schema", "empty_choices", "too_long", "long",
    "bad_request", "refused", "unknown", "elsewhere", "flood", "echo", "hang", "drip", "slow",
]  # fmt: skip


def test_a_server_that_misbehaves_costs_candidates_and_never_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_KEY", KEY)
    with serving(author) as server:
        model = speak(server, key_env="SMALL_KEY", parallel=2, timeout_s=1.0, retries=0)
        server.faults = ["slow", *FAULTS]  # the first one is the probe's
        with search(tmp_path, server, models=[model], toolbox=nothing()) as run:
            settled, reserved = events(run, Settled), {each.call: each for each in events(run, Reserved)}
            assert run.status()["stopped"] == "evaluations"
            assert not server.faults
            assert {each.failure for each in settled} > {None, "KeyRefused", "TimedOut", "Garbled", "Dropped"}
            guessed = [each for each in settled if each.certainty is Certainty.ESTIMATED]
            assert guessed and all(each.tokens <= reserved[each.call].tokens for each in guessed)
            counted = sum(each.tokens for each in settled if each.certainty is Certainty.COUNTED)
            assert counted == server.read + server.written
            assert populations.check(run.path) == []
        written = [file.read_bytes() for file in run.path.rglob("*") if file.is_file()]
        assert len(written) > 2 * len(FAULTS)
        assert not [text for text in written if KEY.encode() in text]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command said that ended with one line and exit code 2, before any evaluation."""
    code = run_command_line(["run", "instant", "--target", f"{HERE}:Parts", *words])
    said = capsys.readouterr()
    assert (code, said.out) == (2, ""), said.err
    (line,) = said.err.splitlines()
    return line


def test_what_a_user_has_to_mend_is_said_before_the_first_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "OPENAI_API_KEY" in refused(capsys, "--model", "gpt-5")
    assert "http" in refused(capsys, "--model", "qwen@localhost:8000")
    assert "is the server running?" in refused(capsys, "--model", "qwen@http://127.0.0.1:9/v1")
    with serving(author) as server:
        here = f"small@{server.url}"
        server.faults = ["refused"]
        assert "key" in refused(capsys, "--model", here)
        server.faults = ["unknown"]
        assert "small" in refused(capsys, "--model", here)
        assert "usd = 5: model 'small' has no price" in refused(capsys, "--model", here, "--usd", "5")
        assert "two models are named 'small'" in refused(capsys, "--model", here, "--model", here)
        for budget in ("--usd", "--tokens", "--evaluations", "--minutes"):
            assert f"{budget[2:]} = 0" in refused(capsys, "--model", here, budget, "0")
        assert "no starting kernel" in refused(capsys)
        assert server.requests and not list(tmp_path.rglob("run.db"))


ONLY: dict[str, Any] = {"evaluations": None, "patience": 1000}


def test_a_cap_stops_the_run_before_it_is_passed_and_is_named(tmp_path: Path) -> None:
    with serving(author) as server:
        for name, cap in (("tokens", 30_000), ("usd", 0.03)):
            with search(tmp_path / name, server, toolbox=nothing(), **{**ONLY, name: cap}) as run:
                assert run.status()["stopped"] == name
                assert 0 < run.ledger()[name] <= cap
                assert populations.check(run.path) == []


def test_time_that_is_too_short_for_another_answer_is_named_as_what_stops_the_run(tmp_path: Path) -> None:
    def slowly(body: Body) -> str:
        if "# Your task" in body["messages"][-1]["content"]:
            time.sleep(1.6)
        return author(body)

    with serving(slowly) as server:
        chosen = {**ONLY, "minutes": 0.05}
        with search(tmp_path, server, toolbox=nothing(), **chosen) as run:
            assert run.status()["stopped"] == "minutes"


def test_a_first_call_that_no_cap_has_room_for_ends_a_run_that_has_nothing_else(tmp_path: Path) -> None:
    with serving(author) as server, search(tmp_path, server, tokens=100) as run:
        assert (run.status()["stopped"], run.evaluations) == ("tokens", 0)


class Slow:
    """A model that takes its time over everything but the probe."""

    def __init__(self) -> None:
        self.free = threading.Event()

    def __call__(self, body: Body) -> str:
        if "# Your task" in body["messages"][-1]["content"]:
            self.free.wait(30)
        return author(body)


@pytest.mark.parametrize("target", ["Parts", "PartsBeside"])
def test_a_slow_model_holds_up_nothing(tmp_path: Path, target: str) -> None:
    slow, seed = Slow(), tmp_path / "seed.cpp"
    seed.write_text(SEED)

    class Patient(Silent):
        """Lets the model answer once forty kernels are judged, and waits for that."""

        def told(self, event: Event, state: State) -> None:
            if state.evaluations >= 40 and not slow.free.is_set():
                slow.free.set()
                while not list((tmp_path / "run" / "calls").glob("*.answer.json")):
                    time.sleep(0.01)

    with serving(slow) as server:
        chosen = settings(evaluations=60, models=[speak(server, timeout_s=30.0)])
        where = {"target": f"{HERE}:{target}", "run_dir": tmp_path / "run", "seeds": [seed]}
        session.start("instant", chosen, Patient(), **where)  # type: ignore[arg-type]
    with populations.open(tmp_path / "run") as run:
        assert run.evaluations == 60
        ends = events(run, Proposed, Stillborn)
        answered = next(n for n, each in enumerate(ends) if each.call is not None)
        assert sum(isinstance(each, Proposed) for each in ends[:answered]) >= 40
        assert populations.check(run.path) == []


def test_an_interrupted_run_uses_what_arrived_and_asks_again_once(tmp_path: Path) -> None:
    slow, path = Slow(), tmp_path / "run"

    class Impatient(Silent):
        """Ends the process while requests are open."""

        def told(self, event: Event, state: State) -> None:
            if isinstance(event, Reserved) and event.operator != "probe" and state.stopped is None:
                raise Killed

    class Killed(BaseException):
        """As a kill would: nothing more is logged."""

    with serving(slow) as server:
        models = [speak(server, parallel=1, timeout_s=30.0)]
        chosen, where = settings(evaluations=3, models=models), f"{HERE}:Parts"
        with pytest.raises(Killed):
            session.start("instant", chosen, Impatient(), target=where, run_dir=path, toolbox=nothing())
        slow.free.set()
        session.resume(path, Silent(), nothing())
    with populations.open(path) as run:
        lost = [each for each in events(run, Settled) if each.certainty is Certainty.UNKNOWN]
        again = [each for each in events(run, Reserved) if each.again]
        reserved = next(each for each in events(run, Reserved) if each.call == lost[0].call)
        assert [each.again for each in again] == [each.call for each in lost[:1]]
        assert (lost[0].tokens, lost[0].usd) == (reserved.tokens, reserved.usd)
        assert run.evaluations == 3
    assert populations.check(path) == []


def test_an_answer_that_was_stored_before_a_kill_is_used_and_not_paid_twice(tmp_path: Path) -> None:
    path = tmp_path / "run"

    class Impatient(Silent):
        """Ends the process once the first answer is on the disk, before the loop looks."""

        def told(self, event: Event, state: State) -> None:
            if isinstance(event, Reserved) and event.operator != "probe" and not state.evaluations:
                answer = path / "calls" / f"{event.call}.answer.json"
                self.awaited = answer

        def doing(self, what: str) -> None:
            if what == "waiting for a model" and (answer := getattr(self, "awaited", None)):
                while not answer.exists():
                    time.sleep(0.01)
                raise Killed

    class Killed(BaseException):
        """As a kill would."""

    with serving(author) as server:
        chosen = settings(evaluations=2, models=[speak(server, parallel=1)])
        with pytest.raises(Killed):
            session.start(
                "instant", chosen, Impatient(), target=f"{HERE}:Parts", run_dir=path, toolbox=nothing()
            )
        before = len(server.requests)
        session.resume(path, Silent(), nothing())
        drafts = [body for _, body in server.requests if "Write a first kernel" in str(body)]
    with populations.open(path) as run:
        first = next(each for each in events(run, Proposed))
        assert (first.ask, first.operator, first.call) == (1, "agent_draft", "2.1")
        assert before == 2
        assert len({str(draft) for draft in drafts}) == len(drafts)
        assert not [each for each in events(run, Reserved) if each.again]


def test_a_run_is_replayed_without_a_key_and_says_what_it_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_KEY", KEY)
    config = tmp_path / "settings.toml"
    path = tmp_path / "run"
    with serving(author) as server:
        table = f'[[models]]\nname = "small"\nurl = "{server.url}"\nkey_env = "SMALL_KEY"\nparallel = 2\n'
        config.write_text(f"evaluations = 4\n{table}price_in = 1\nprice_out = 2\n")
        words = ["run", "instant", "--target", f"{HERE}:Parts", "--config", str(config), "--model", "small"]
        assert run_command_line([*words, "--run-dir", str(path), "--json"]) == 0
        assert all(headers["authorization"] == f"Bearer {KEY}" for headers, _ in server.requests)
    told = json.loads(capsys.readouterr().out)
    assert told["models"] == ["small"]
    assert sum(row["tokens"] for row in told["calls"]) == told["ledger"]["tokens"] > 0
    frozen = tomllib.loads((path / "run.toml").read_text())["models"][0]
    assert (frozen["name"], frozen["key_env"], frozen["parallel"]) == ("small", "SMALL_KEY", 2)
    (path / "calls" / "2.1.answer.json").write_text("{}")
    (path / "calls" / "2.1.asked.json").unlink()
    broken = populations.check(path)
    assert [line.split(":")[0] for line in broken] == [
        "calls/2.1.asked.json cannot be read", "calls/2.1.answer.json was changed",
    ]  # fmt: skip
    monkeypatch.delenv("SMALL_KEY")
    assert run_command_line(["replay", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["evaluations"] == 4
    assert run_command_line(["status", str(path)]) == 0
    assert "small, agent_draft: " in capsys.readouterr().err
    assert run_command_line(["resume", str(path)]) == 2
    assert "SMALL_KEY" in capsys.readouterr().err


def test_the_doctor_says_which_models_answer() -> None:
    with serving(author, faults=["slow", "refused", "busy"]) as server:
        findings = doctor.models([speak(server)] * 3)
    assert [finding.ok for finding in findings] == [True, False, False]
    assert "tokens" in findings[0].value
    assert "a run with it is refused" in (findings[1].cure or "")
    assert "a run is not refused for it" in (findings[2].cure or "")


class HoldsOut(Parts):
    """A problem with a case that nobody may see, on which every BROKEN kernel fails."""

    def __init__(self, *arguments: Any, **further: Any) -> None:
        super().__init__()
        hidden = replace(self.card.given, name="5x1025-nonfinite", held_out=True, timed=False)
        self._card = replace(self._card, cases=(self.card.given, hidden))

    def _judged(self, built: Built, verdict: Verdict) -> Verdict:
        found = super()._judged(built, verdict)
        if found.status is not Outcome.INCORRECT or found.evidence is None:
            return found
        name = "5x1025-nonfinite"
        return replace(found, reason=f"case {name} is wrong", evidence=replace(found.evidence, case=name))


def test_no_prompt_of_a_search_tells_of_a_case_that_is_held_out(tmp_path: Path) -> None:
    with (
        serving(author) as server,
        search(
            tmp_path, server, "HoldsOut", toolbox=nothing(), patience=30, reflect_every=2, counsel_share=0.5
        ) as run,
    ):
        asked = [body["messages"][-1]["content"] for _, body in server.requests]
        repairs = [text for text in asked if "repair it" in text]
        assert repairs and all("a held-out case failed" in text for text in repairs)
        assert not [text for text in asked if "nonfinite" in text or "0.25" in text]
        results = [text for text in asked if "# What was tried" in text]
        assert any("-> incorrect at smoke: a held-out case failed" in text for text in results)
        assert not made_by(run, "agent_repair")
        assert len(repairs) <= 2 * len([m for m in run.individuals() if m.status is Outcome.INCORRECT])


def test_what_people_should_know_of_models_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "softmax", "--target", f"{HERE}:Parts", "--evaluations", "3"]
    assert run_command_line([*words, "--run-dir", str(tmp_path / "alone")]) == 0
    assert "no model is named: structural operators search alone" in capsys.readouterr().err
    config = tmp_path / "settings.toml"
    with serving(author) as server:
        small = "context = 600\nmax_output = 500"
        config.write_text(f'[[models]]\nname = "small"\nurl = "{server.url}"\n{small}\n')
        assert run_command_line([*words, "--config", str(config), "--run-dir", str(tmp_path / "small")]) == 0
    said = capsys.readouterr().err
    assert "model small: answers in " in said
    assert "small has room for 100; raise its context" in said
    assert "no model is named" not in said


class Counting:
    """Notes how many requests are answered at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, body: Body) -> str:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.05)
        with self._lock:
            self.now -= 1
        return author(body)


def test_each_model_gets_its_own_key_and_no_more_requests_at_once_than_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"one": f"{KEY}-one", "two": f"{KEY}-two"}
    for name, key in keys.items():
        monkeypatch.setenv(f"KEY_{name.upper()}", key)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}-neither")
    counts = Counting(), Counting()
    with serving(counts[0]) as one, serving(counts[1]) as two:
        models = [
            ModelSettings("one", one.url, key_env="KEY_ONE", parallel=1),
            ModelSettings("two", two.url, key_env="KEY_TWO", parallel=3),
        ]
        with search(tmp_path, one, models=models, toolbox=nothing()) as run:
            assert {each.model for each in events(run, Reserved)} == {"one", "two"}
        for server, name in ((one, "one"), (two, "two")):
            assert {headers["authorization"] for headers, _ in server.requests} == {f"Bearer {keys[name]}"}
            assert not [headers for headers, _ in server.requests if "neither" in str(headers)]
    assert counts[0].most == 1
    assert 2 <= counts[1].most <= 3
