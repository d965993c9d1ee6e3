"""Questions whose answer is no kernel: what holds a kernel back, and what the latest results teach.

They gain nothing by themselves, so no bandit chooses them: they take a bounded share of the calls, and each
is asked for where writers are about to need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from evo.calls import GONE
from evo.course import Course
from evo.delegating import Delegation, Question
from evo.errands import Errand
from operators.agents import diagnose, reflect
from operators.agents.answers import Unread
from operators.agents.diagnose import Diagnose
from operators.agents.fitting import Fitted
from operators.agents.models import ModelSettings
from operators.agents.recorded import Answered, Failed
from operators.agents.reflect import SUPPORT, Reflect
from populations.events import Diagnosed, Reflected
from populations.state import State

DROPPED = 8  # lessons that did not hold and that a reflection is told of, the latest ones


class Counsel:
    """Chooses such questions and reads their answers.

    Args:
        delegation: asks for kernels; its settings, what it tells and how it draws parents hold here too.
    """

    def __init__(self, delegation: Delegation) -> None:
        self._delegation, self._settings, self._briefing = (
            delegation,
            delegation.settings,
            delegation.briefing,
        )

    def question(
        self, ask: int, free: Sequence[ModelSettings], state: State, course: Course
    ) -> Question | None:
        """What a model is asked now, if anything; only the state and the number of the ask decide.

        Args:
            ask: the next ask's number.
            free: models that a request may go to.
            state, course: what is known.
        """
        memory = course.memory
        if not free or memory.counsels + 1 > self._settings.counsel_share * (memory.calls + 1):
            return None
        rng = Random(f"{self._settings.seed}:{ask}:{course.errands.begun}:counsel")
        model = rng.choice(free)
        # Beside fast rewrites a reflection is always due: it shall not take all the share.
        if memory.counsels > 2 * len(memory.asked):
            diagnosis = self._diagnosis(model, state, course, rng)
            return diagnosis or self._reflection(model, state, course)
        return self._reflection(model, state, course) or self._diagnosis(model, state, course, rng)

    def heard(self, errand: Errand, answer: Answered | Failed | None) -> Diagnosed | Reflected:
        """What an answer comes to, as an event.

        Args:
            errand: whose answer it is.
            answer: as it was stored; None: it is gone.
        """
        said = answer.answer if isinstance(answer, Answered) else Unread(answer.reason if answer else GONE)
        if errand.operator == Diagnose.name:
            (id,) = errand.parents
            found = said if isinstance(said, Unread) else diagnose.read(said)
            if isinstance(found, Unread):
                return Diagnosed(errand.call, id, None, found.reason)
            return Diagnosed(errand.call, id, found)
        drawn = said if isinstance(said, Unread) else reflect.read(said, errand.parents)
        if isinstance(drawn, Unread):
            return Reflected(errand.call, None, drawn.reason)
        return Reflected(errand.call, drawn)

    def _reflection(self, model: ModelSettings, state: State, course: Course) -> Question | None:
        """Once so many kernels were judged, a question on what they teach."""
        memory, every = course.memory, self._settings.reflect_every
        under_way = any(each.operator == Reflect.name for each in course.errands.open.values())
        if not every or memory.judged < every or len(memory.recent) < SUPPORT or under_way:
            return None
        results = [self._briefing.result(id, state) for id in memory.recent]
        brief = self._briefing.of((), state.calibration, lessons=[held.lesson for held in memory.lessons])
        while len(results) >= SUPPORT:  # of a small model's context
            agent = Reflect(results, memory.dropped[-DROPPED:])
            prompt = agent.prompt(brief, model)
            if isinstance(prompt, Fitted):
                return Question(agent.name, model, agent.about(brief), prompt.messages)
            results = results[(len(results) + 1) // 2 :]
        return None

    def _diagnosis(self, model: ModelSettings, state: State, course: Course, rng: Random) -> Question | None:
        """A kernel that is drawn as parents are and has no diagnosis yet."""
        if not len(state.archive):
            return None
        for id in self._delegation.select(state, course, rng):
            if id not in course.memory.asked:
                agent = Diagnose()
                brief = self._briefing.of((id,), state.calibration, course.lineages.of((id,)))
                prompt = agent.prompt(brief, model)
                if isinstance(prompt, Fitted):
                    return Question(agent.name, model, (id,), prompt.messages)
        return None
