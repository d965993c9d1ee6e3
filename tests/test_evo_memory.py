"""A search that diagnoses kernels and learns lessons, against a server on a real socket."""

# ruff: noqa: ARG002 -- stand-ins take what the seam hands them

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from chat_server import Body, ChatServer, serving
from test_evo_agents import Parts, events, nothing, says, speak
from test_evo_search import SEED

import evo
import populations
from evo import session
from evo.briefing import Lineages
from evo.command import run_command_line
from evo.course import TUNE, Course
from evo.errands import COUNSEL, PROBE
from evo.folded import replayed
from evo.progress import Silent
from evo.settings import Settings, checked, settings
from operators.agents.diagnose import Diagnose
from operators.agents.reflect import Reflect
from operators.agents.writers import Mutate
from populations.events import Diagnosed, Event, Judged, Proposed, Reflected, Reserved, Settled, Stillborn
from populations.state import State
from populations.testing import STARTED, a_failure, a_kernel, a_measurement, a_proposal

HERE = __name__
HELPS, HARMS = "Read every row once.", "Write every row twice."
ALONE, MADE_UP = "One kernel says so.", "Nobody ever saw this."
CHOSEN: dict[str, Any] = {"evaluations": 30, "patience": 10, "reflect_every": 8, "counsel_share": 0.3}


class Graded(Parts):
    """What a kernel is worth is the number of its part G."""

    def gain(self, source: str) -> float:
        return 0.02 * grade(source)


class GradedBeside(Graded):
    """The same, where builds disturb no measuring."""

    separate = True


def grade(text: str) -> int:
    """The best grade of the kernels in a text; 50 where there is none."""
    return max(map(int, re.findall(r"static int G(\d+);", text)), default=50)


class Adviser:
    """Diagnoses, draws lessons, and writes kernels that are better than their parents where it is told HELPS
    and not HARMS."""

    def __init__(self) -> None:
        self._number = itertools.count(1)

    def __call__(self, body: Body) -> str:
        asked = body["messages"][-1]["content"]
        task = asked.partition("# Your task")[2]
        if "holds this kernel back" in task:
            (id,) = re.findall(r"^# The kernel: kernel (\d+)$", asked, re.MULTILINE)
            return json.dumps(diagnosed(int(id)))
        if "What do these results teach" in task:
            ids = [int(id) for id in re.findall(r"^- (\d+) \(", asked, re.MULTILINE)]
            support = {HELPS: ids[:2], HARMS: ids[-2:], ALONE: ids[:1], MADE_UP: [9998, 9999]}
            lessons = [{"lesson": text, "kernels": kernels} for text, kernels in support.items()]
            return f"They teach this:\n```json\n{json.dumps({'lessons': lessons})}\n```\n"
        better = HELPS in asked and HARMS not in asked
        return says("why not", f"G{grade(asked) + (1 if better else -1)}", f"N{next(self._number)}")


def diagnosed(id: int) -> dict[str, Any]:
    return {"bottleneck": "cache", "evidence": [f"seen in {id}"], "prescriptions": [f"mend {id} by blocks"]}


def search(folder: Path, server: ChatServer, target: str = "Graded", **more: Any) -> populations.Run:
    chosen = {**CHOSEN, "models": [speak(server, parallel=1)], "toolbox": nothing(), **more}
    return evo.search("instant", f"{HERE}:{target}", run_dir=folder / "run", **chosen)


def prompt(run: populations.Run, call: str) -> str:
    """The question that a call asked."""
    told = json.loads((run.path / "calls" / f"{call}.asked.json").read_text())
    return str(told["messages"][-1]["text"])


def remembered(run: populations.Run) -> Course:
    """What a process that resumes the run would know."""
    return replayed(run.log, checked(run.settings["search"], "the run"))[1]


def asked(run: populations.Run, *operators: str) -> list[Reserved]:
    return [each for each in events(run, Reserved) if each.operator in operators]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("remembering")
    with serving(Adviser()) as server, search(folder, server, evaluations=90) as run:
        return run.path


def test_a_diagnosis_is_asked_for_once_and_told_to_every_author_of_a_child(path: Path) -> None:
    with populations.open(path) as run:
        known: set[int] = set()
        told = 0
        for event in events(run, Diagnosed, Reserved):
            if isinstance(event, Diagnosed):
                assert event.diagnosis is not None and event.diagnosis.bottleneck == "cache"
                assert event.id not in known
                known.add(event.id)
            elif event.operator not in (PROBE, *COUNSEL):
                for id in event.parents:
                    assert (f"- to do: mend {id} by blocks" in prompt(run, event.call)) == (id in known)
                    told += id in known
        about = [each.parents for each in asked(run, Diagnose.name)]
        assert told > 5 and len(about) == len(set(about)) == len(known) > 3
        assert all("Verdict: measured" in prompt(run, each.call) for each in asked(run, Diagnose.name))


def test_counsel_takes_no_ask_and_no_evaluation_and_a_bounded_share_of_the_calls(path: Path) -> None:
    with populations.open(path) as run:
        assert run.evaluations == 90
        counsel = {each.call for each in asked(run, *COUNSEL)}
        assert counsel and not counsel & {each.call for each in events(run, Proposed, Stillborn)}
        calls = [each.operator in COUNSEL for each in events(run, Reserved) if each.operator != PROBE]
        for n in range(1, len(calls) + 1):
            assert sum(calls[:n]) <= 0.3 * n
        assert sum(calls) > 0.1 * len(calls)
        spent = {row["operator"]: row["tokens"] for row in run.calls()}
        assert spent[Diagnose.name] > 0 and spent[Reflect.name] > 0
        assert sum(spent.values()) == run.ledger()["tokens"]
        assert populations.check(run.path) == []


def test_lessons_that_two_kernels_support_are_told_to_some_authors_by_lot(path: Path) -> None:
    with populations.open(path) as run:
        first = events(run, Reflected)[0]
        assert [lesson.text for lesson in first.lessons] == [HELPS, HARMS]
        judged: set[int] = set()
        held, told, untold = False, set[int](), set[int]()
        for event in events(run, Reserved, Reflected, Judged):
            match event:
                case Judged(id):
                    judged.add(id)
                case Reflected(_, lessons):
                    held = True
                    assert all(len(each.ids) >= 2 and judged.issuperset(each.ids) for each in lessons)
                case Reserved() if event.operator not in (PROBE, *COUNSEL):
                    assert held or not event.lessons
                    for number, text in enumerate((HELPS, HARMS), start=1):
                        assert (text in prompt(run, event.call)) == (number in event.lessons)
                    told.update(event.lessons)
                    untold.update(event.untold)
        assert told == {1, 2} and 1 in untold
        assert not [each for each in asked(run, *COUNSEL, Mutate.name) if ALONE in prompt(run, each.call)]


def test_a_lesson_that_does_not_predict_is_dropped_and_not_learned_again(path: Path) -> None:
    with populations.open(path) as run:
        memory = remembered(run).memory
        assert [held.lesson.text for held in memory.lessons] == [HELPS]
        assert memory.dropped == [HARMS] and memory.lessons[0].score > 1
        last = max(n for n, each in enumerate(events(run, Reserved)) if 2 in (*each.lessons, *each.untold))
        after = events(run, Reserved)[last + 1 :]
        writers = [each for each in after if each.operator not in COUNSEL]
        assert not [each for each in writers if HARMS in prompt(run, each.call)]
        drawn = [prompt(run, each.call) for each in after if each.operator == Reflect.name]
        assert drawn and all(HARMS in text.partition("# Lessons that did not hold")[2] for text in drawn)
        assert HARMS in [lesson.text for lesson in events(run, Reflected)[-1].lessons]


def test_results_are_told_with_what_came_of_them_and_each_once(path: Path) -> None:
    with populations.open(path) as run:
        told = [re.findall(r"^- (\d+) \((\w+)\): .* -> (.*)$", prompt(run, each.call), re.MULTILINE)
                for each in asked(run, Reflect.name)]  # fmt: skip
        ids = [int(id) for lines in told for id, _, _ in lines]
        assert len(told) > 3 and all(len(lines) >= 8 for lines in told)
        assert ids == list(range(1, len(ids) + 1))
        speed = r"\d+\.\d\d times the baseline's speed"
        for _, operator, outcome in itertools.chain(*told):
            beside = "" if operator == "agent_draft" else r", \d+\.\d\d times its parent's"
            assert re.fullmatch(speed + beside, outcome)


@pytest.mark.parametrize(
    "moment, agent", [(Reserved, Diagnose), (Settled, Diagnose), (Reserved, Reflect), (Settled, Reflect)]
)
def test_counsel_survives_a_kill(tmp_path: Path, moment: type[Event], agent: type) -> None:
    path = tmp_path / "run"

    class Killed(BaseException):
        """As a kill would: nothing more is logged."""

    class Impatient(Silent):
        """Ends the process while the question is open, or before what its answer says is logged."""

        def __init__(self) -> None:
            self.calls: set[str] = set()

        def told(self, event: Event, state: State) -> None:
            if isinstance(event, Reserved) and event.operator == agent.name:
                self.calls.add(event.call)
            if isinstance(event, moment) and getattr(event, "call", "") in self.calls:
                raise Killed

    with serving(Adviser()) as server:
        chosen = settings(**CHOSEN, models=[speak(server, parallel=1)])
        where = {"target": f"{HERE}:Graded", "run_dir": path, "toolbox": nothing()}
        with pytest.raises(Killed):
            session.start("instant", chosen, Impatient(), **where)  # type: ignore[arg-type]
        session.resume(path, Silent(), nothing())
    with populations.open(path) as run:
        assert run.evaluations == 30 and populations.check(path) == []
        heard = [each.call for each in events(run, Diagnosed, Reflected)]
        assert len(heard) == len(set(heard))
        about = [each.parents for each in asked(run, Diagnose.name) if each.again is None]
        assert len(about) == len(set(about))
        first = asked(run, agent.name)[0]
        again = [each.call for each in events(run, Reserved) if each.again == first.call]
        assert {first.call, *again} & set(heard)
        memory = remembered(run).memory
        assert HELPS in [held.lesson.text for held in memory.lessons]
        assert set(memory.diagnoses) == {each.id for each in events(run, Diagnosed)}


def test_counsel_is_taken_beside_a_stream_of_asks(tmp_path: Path) -> None:
    with serving(Adviser()) as server, search(tmp_path, server, "GradedBeside") as run:
        memory = remembered(run).memory
        assert memory.lessons and memory.diagnoses
        assert run.evaluations == 30 and populations.check(run.path) == []


def test_rewrites_are_results_and_steps_of_the_tuner_are_none(tmp_path: Path) -> None:
    seed = tmp_path / "seed.cpp"
    seed.write_text(SEED)
    more = {"seeds": [seed], "toolbox": None, "evaluations": 120}
    with serving(Adviser()) as server, search(tmp_path, server, **more) as run:
        told = {id for each in asked(run, Reflect.name) for id in each.parents}
        operators = {run.get(id).operator for id in told}
        assert "seed" in operators and TUNE not in operators
        assert TUNE in {member.operator for member in run.individuals()}
        assert {name for name in operators if not name.startswith("agent_")} > {"seed"}


def test_lessons_that_are_always_due_leave_room_for_diagnoses(tmp_path: Path) -> None:
    with serving(Adviser()) as server, search(tmp_path, server, reflect_every=1) as run:
        counsel = [each.operator for each in asked(run, *COUNSEL)]
        assert len(counsel) > 6 and abs(counsel.count(Reflect.name) - counsel.count(Diagnose.name)) <= 1


def test_counsel_that_cannot_be_used_costs_its_call_alone(tmp_path: Path) -> None:
    write = Adviser()

    def mute(body: Body) -> str:
        task = body["messages"][-1]["content"].partition("# Your task")[2]
        return "I would not know." if "JSON" in task else write(body)

    with serving(mute) as server, search(tmp_path, server) as run:
        heard = events(run, Diagnosed, Reflected)
        assert {type(each) for each in heard} == {Diagnosed, Reflected}
        assert {each.reason for each in heard} == {"there is no JSON object in the answer"}
        memory = remembered(run).memory
        assert (run.evaluations, memory.diagnoses, memory.lessons) == (30, {}, [])
        assert len(memory.asked) == len(asked(run, Diagnose.name))


@pytest.mark.parametrize(
    "off, never", [({"counsel_share": 0.0}, set(COUNSEL)), ({"reflect_every": 0}, {Reflect.name})]
)
def test_counsel_can_be_switched_off(tmp_path: Path, off: dict[str, Any], never: set[str]) -> None:
    with serving(Adviser()) as server, search(tmp_path, server, evaluations=12, **off) as run:
        assert not asked(run, *never)
        assert set(Settings.model_fields) > set(off)


def test_tables_of_kernels_name_the_model(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with populations.open(path) as run:
        assert set(run.frame("individuals")["model"]) == {"small"}
        assert {member.model for member in run.individuals()} == {"small"}
    assert run_command_line(["top", str(path)]) == 0
    assert "small" in capsys.readouterr().err
    assert run_command_line(["top", str(path), "--json"]) == 0
    assert {each["model"] for each in json.loads(capsys.readouterr().out)} == {"small"}


def test_people_see_diagnoses_and_lessons(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with populations.open(path) as run:
        id = events(run, Diagnosed)[0].id
    assert run_command_line(["show", str(path), str(id)]) == 0
    said = capsys.readouterr().err
    assert "held back, by a diagnosis: cache" in said and f"  to do: mend {id} by blocks" in said
    assert run_command_line(["show", str(path), str(id), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["diagnosis"]["evidence"] == [f"seen in {id}"]
    assert run_command_line(["replay", str(path), "--json"]) == 0
    assert HELPS in json.loads(capsys.readouterr().out)["lessons"]


def test_an_author_hears_of_answers_that_gave_no_kernel_and_of_each_operator_the_latest_alone(
    tmp_path: Path,
) -> None:
    silent = (
        (3, "agent_mutate", "the source is cut off by the token limit", "3"),
        (4, "agent_mutate", "the same work as kernel 2", "4"),
        (5, "agent_edit", "line 7: 'system' is refused\nas such", "5"),
        (6, "unroll", "no place to apply it", None),
    )
    with populations.EventLog.create(tmp_path / "run") as log:
        log.append(STARTED)
        kernels = [a_kernel(1), a_kernel(2)]
        log.append(a_proposal(1), Judged(1, a_measurement(0.5)), kernels=kernels)
        log.append(a_proposal(2, parents=(1,)), Judged(2, a_failure()))
        log.append(*(Stillborn(ask, name, (1,), reason, call=call) for ask, name, reason, call in silent))
        state = State(log)
        lineages = Lineages(state)
        for record in log.records():
            state.apply(record.event, record.time)
            lineages.apply(record.event)
    assert [(one.id, one.operator, one.outcome) for one in lineages.of((1, 2))] == [
        (2, "unroll", "incorrect at search_gate"),
        (0, "agent_mutate", "the same work as kernel 2"),
        (0, "agent_edit", "line 7: 'system' is refused as such"),
    ]
