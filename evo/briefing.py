"""What an agent is told: the card, the parents with their verdicts, and what was tried on their lineage.

Cases that are held out are left out here, and what a verdict says of them in ``operators.agents.hearing``. Of
derived cases a half is shown, which the run's seed decides.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random

from evo.profiles import static_lines
from fitness import machine
from fitness.card import Case, ProblemCard, TensorSpec
from operators.agents import guides, problem
from operators.agents.answers import one_line
from operators.agents.chat import Tool
from operators.agents.context import AgentBrief, Parent, ShownCase, Told, Tried
from operators.agents.hearing import told
from populations.calibration import Calibration
from populations.events import Event, Judged, Proposed, Stillborn
from populations.kernel import Kernel
from populations.learned import Diagnosis, Lesson
from populations.profile import KernelProfile
from populations.state import State
from populations.text import read_text
from populations.verdict import Outcome, Verdict

REMEMBERED = 6  # attempts on a parent that its next agent is told of
NOBODY, NO_CHILD = 0, "the answer gave no new kernel"  # of an attempt that nothing was born from


class Lineages:
    """What was tried on each kernel and led nowhere: a fold over events.

    Args:
        state: the population; each event is applied to it first.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._proposed: dict[int, Proposed] = {}
        self._tried: dict[int, deque[tuple[int, Tried]]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._numbers = count()

    def apply(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case Proposed():
                self._proposed[event.id] = event
            case Judged(id, verdict):
                born = self._proposed.pop(id, None)
                if born and born.parents and (outcome := self._outcome(born, verdict)) is not None:
                    self._note(born.parents, Tried(id, born.operator, born.rationale, outcome))
            case Stillborn() if event.call is not None:
                self._note(event.parents, Tried(NOBODY, event.operator, NO_CHILD, one_line(event.reason)))

    def of(self, parents: Sequence[int]) -> tuple[Tried, ...]:
        """Without success, oldest first."""
        found = dict(noted for parent in parents for noted in self._tried.get(parent, ()))
        return tuple(found[number] for number in sorted(found))[-REMEMBERED:]

    def _note(self, parents: Sequence[int], one: Tried) -> None:
        """Of answers that gave no child, each operator's latest is enough."""
        number = next(self._numbers)
        for parent in parents:
            tried = self._tried[parent]
            if one.id == NOBODY:
                alike = [each for each in tried if (each[1].id, each[1].operator) == (NOBODY, one.operator)]
                for each in alike:
                    tried.remove(each)
            tried.append((number, one))

    def _outcome(self, born: Proposed, verdict: Verdict) -> str | None:
        """Why it was no success; None: it was one, or nothing is known."""
        if verdict.status < Outcome.LOWERED:
            return f"{verdict.status} at {verdict.stage}"
        before = self._state.best_rank(born.parents)
        if verdict.rank is None or before is None or verdict.rank > before:
            return None
        return "not faster"


class Briefing:
    """Makes briefs.

    Args:
        card: the problem.
        language: of the kernels.
        signature: the entry they must have.
        seed: decides which derived cases are shown.
        kernel_of, proposed, verdict_of: of an individual, wherever they are.
    """

    def __init__(
        self,
        card: ProblemCard,
        language: str,
        signature: str,
        seed: int,
        kernel_of: Callable[[int], Kernel],
        proposed: Callable[[int], Proposed],
        verdict_of: Callable[[int], Verdict | None],
    ) -> None:
        self._card, self._language, self._signature = card, language, signature
        self._cases = [case for case in card.cases if _is_shown(case, seed)]
        self._hidden = [case.name for case in card.cases if case not in self._cases]
        self._reference = _reference(card)
        self._kernel_of, self._proposed, self._verdict_of = kernel_of, proposed, verdict_of

    def of(
        self,
        parents: Sequence[int],
        calibration: Calibration | None,
        failures: tuple[Tried, ...] = (),
        direction: str = "",
        lessons: Sequence[Lesson] = (),
        diagnoses: Mapping[int, Diagnosis] | None = None,
    ) -> AgentBrief:
        """All that an agent may know.

        Args:
            parents: ids.
            calibration: for the hardware's floor.
            failures: what was tried on them.
            direction: what to explore.
            lessons: what the run has learned, the most useful first.
            diagnoses: of kernels, by id.
        """
        floors = _floors(self._card, calibration)
        return AgentBrief(
            language=self._language,
            problem=self._card.name,
            summary=self._card.summary,
            reference=self._reference,
            signature=self._signature,
            tolerance=self._card.tolerance,
            facts=tuple(facts(self._language, calibration).items()),
            cases=tuple(map(_shown, self._cases)),
            floor=self._floor(floors),
            parents=tuple(self._parent(id, floors, (diagnoses or {}).get(id)) for id in parents),
            failures=failures,
            lessons=tuple(lessons),
            direction=direction,
        )

    @property
    def guide(self) -> Tool:
        """The guide for authors, as a tool."""
        return guides.tool(self._language, facts(self._language, None))

    def known(self, id: int) -> Parent | None:
        """A kernel as whoever makes one from it sees it; None: there is none that was judged."""
        if self._verdict_of(id) is None:
            return None
        return self._parent(id, {}, None)

    def parents(self, id: int) -> tuple[int, ...]:
        """What a kernel was made from."""
        return self._proposed(id).parents

    def profile(self, id: int) -> tuple[KernelProfile, ...]:
        """What the device functions of a kernel are made of; empty: not known."""
        verdict = self._verdict_of(id)
        return verdict.profile if verdict else ()

    def result(self, id: int, state: State) -> Tried:
        """A judged kernel and what came of it, in a line.

        Args:
            id: its number.
            state: what is known.
        """
        born, verdict = self._proposed(id), self._verdict_of(id)
        outcome = self._outcome(born, verdict, state) if verdict else "not judged yet"
        return Tried(id, born.operator, born.rationale, outcome)

    def _outcome(self, born: Proposed, verdict: Verdict, state: State) -> str:
        heard = self._told(verdict)
        if heard.failed:
            return f"{heard.status} at {heard.stage}: {one_line(heard.reason)}"
        if verdict.rank is None or verdict.speedup is None:
            return str(heard.status)
        speed = f"{verdict.speedup:.2f} times the baseline's speed"
        before = state.best_rank(born.parents)
        if before is None:
            return speed
        return f"{speed}, {math.exp(verdict.rank - before):.2f} times its parent's"

    def _parent(self, id: int, floors: dict[str, float], diagnosis: Diagnosis | None) -> Parent:
        born, verdict = self._proposed(id), self._verdict_of(id)
        heard = self._told(verdict, floors) if verdict else None
        profile = "\n".join(static_lines(verdict.profile)) if verdict else ""
        return Parent(id, self._kernel_of(id), born.operator, born.rationale, heard, profile, diagnosis)

    def _told(self, verdict: Verdict, floors: dict[str, float] | None = None) -> Told:
        return told(verdict, [case.name for case in self._cases], self._hidden, floors)

    def _floor(self, floors: dict[str, float]) -> str:
        lines = [
            f"{case.bytes / 1e6:.3g} MB have to move: {floors[case.name] * 1e6:.3g} µs on {case.name}"
            for case in self._cases
            if case.timed and case.name in floors
        ]
        return "; ".join(lines)


def facts(language: str, calibration: Calibration | None) -> dict[str, str]:
    """What authors of kernels should know of the target, by name."""
    known = dict(calibration.machine) if calibration else {}
    if language == "cpp":
        cache = known.get("cache_bytes") or machine.cache_bytes()
        return {
            "cores": str(known.get("cores") or machine.cores()),
            "vector registers": f"{known.get('vector_bytes') or machine.vector_bytes()} bytes",
            "last-level cache": f"{int(cache) >> 20} MiB",
        }
    return known


def _is_shown(case: Case, seed: int) -> bool:
    if case.held_out:
        return False
    return not case.derived or case.timed or Random(f"{seed}:{case.name}").random() < 0.5


def _shown(case: Case) -> ShownCase:
    read = tuple(map(_spec, case.inputs + case.parameters))
    return ShownCase(case.name, read, tuple(map(_spec, case.outputs)), case.distribution, case.timed)


def _spec(spec: TensorSpec) -> str:
    return f"{spec.name}: {spec.dtype}{list(spec.shape)}"


def _floors(card: ProblemCard, calibration: Calibration | None) -> dict[str, float]:
    found = calibration.floors if calibration else ()
    return {floor.case: floor.seconds for floor in found if floor.policy == card.policy}


def _reference(card: ProblemCard) -> str:
    """The problem's file as agents may see it; "" where there is none to read."""
    path = Path(card.path)
    try:
        return problem.shown(read_text(path), card.given.constants) if path.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return ""
