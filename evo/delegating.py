"""What models are asked next: an agent, a model and parents, chosen by the same bandit as the rewrites.

A request waits beside the loop and takes an evaluation only once it is answered. So an agent is asked where
it draws better than a rewrite that is taken at random, and a model of which a request is free is never kept
from work by the many rewrites there are. Only the state and the number of the ask decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from evo.arms import Arm
from evo.bandit import Bandit, shuffled
from evo.briefing import Briefing
from evo.course import Course
from evo.directions import Directions
from evo.settings import Control, Settings
from operators.agents.answers import Unread
from operators.agents.chat import Message, Tool
from operators.agents.context import AgentBrief
from operators.agents.explore import Explore
from operators.agents.fitting import TooLong
from operators.agents.models import ModelSettings
from operators.agents.recorded import Answered, Failed
from operators.agents.writers import APPROACHES, WRITERS, Cross, Draft, Edit, Mutate, Repair, Writer
from operators.proposal import Proposal
from populations.kernel import Kernel
from populations.state import State

LONG = 120  # lines from which a kernel is edited and not only rewritten
ROUNDS = 2  # of drafts by every approach, while nothing is measured
AGENTS: dict[str, Writer] = {writer.name: writer for writer in WRITERS}
Agent = Writer | Explore
Select = Callable[[State, Course, Random], tuple[int, int]]


@dataclass(frozen=True)
class Question:
    """What to send, and to whom; see ``Reserved``."""

    operator: str
    model: ModelSettings
    parents: tuple[int, ...]
    messages: tuple[Message, ...]
    lessons: tuple[int, ...] = ()
    untold: tuple[int, ...] = ()
    mends: str | None = None
    tools: tuple[Tool, ...] = ()
    talk: str | None = None  # the conversation that it goes on with


class Delegation:
    """Chooses questions and reads answers.

    Args:
        settings: models, weights, seed.
        briefing: makes what agents are told.
        language: of the kernels.
        structural: the arms that need no model.
        select: two parents, which may be the same.
        kernel_of: the kernel of an individual.
        explore: the agent that may try kernels, where there is a device to try them on.

    Attributes:
        settings, briefing, select: as given.
        too_long: models that a prompt was too long for, and by how much.
    """

    def __init__(
        self,
        settings: Settings,
        briefing: Briefing,
        language: str,
        structural: Sequence[Arm],
        select: Select,
        kernel_of: Callable[[int], Kernel],
        explore: Explore | None = None,
    ) -> None:
        self.settings, self.briefing, self.select = settings, briefing, select
        self._language, self._structural, self._kernel_of = language, structural, kernel_of
        self._directions = Directions(language, kernel_of, briefing.profile)
        self.too_long: dict[str, str] = {}
        every: tuple[Agent, ...] = WRITERS if explore is None else (*WRITERS, explore)
        self._agents = {agent.name: agent for agent in every if settings.weights.get(agent.name, 1.0) > 0}

    def models(self, course: Course) -> list[ModelSettings]:
        """Those that are not left alone."""
        errands = course.errands
        return [each for each in self.settings.models if errands.off(each.name, each.parallel) is None]

    def free(self, course: Course, left_s: float) -> list[ModelSettings]:
        """Models that one more request may go to; none where many answers wait for an ask.

        Args:
            course: what is known.
            left_s: seconds until answers are of no use any more.
        """
        errands = course.errands
        if len(errands.arrived) >= sum(each.parallel for each in self.settings.models):
            return []
        under_way = [errand.model for errand in errands.open.values()]
        return [
            each
            for each in self.models(course)
            if under_way.count(each.name) < each.parallel and errands.usual_s(each.name) < left_s
        ]

    def question(
        self, ask: int, free: Sequence[ModelSettings], state: State, course: Course, needed: bool
    ) -> Question | None:
        """Which kernel a model is asked for now, if any.

        Args:
            ask: the next ask's number.
            free: models that a request may go to.
            state, course: what is known.
            needed: whether nothing but a model can go on.

        Returns:
            None: no model is free, no agent applies, or a rewrite is worth more.
        """
        if not free:
            return None
        rng = Random(f"{self.settings.seed}:{ask}:{course.errands.begun}")
        arms = [
            Arm(agent.name, model.name)
            for agent in self._agents.values()
            for model in free
            if not isinstance(agent, Explore) or course.errands.may_talk(model)
        ]
        rival = [rng.choice(self._structural)] if self._structural and len(state.archive) else []
        every = [*arms, *([] if needed else rival)]
        for position in self._order(every, rng, course.bandit):
            if position >= len(arms):
                return None
            agent = self._agents[arms[position].operator]
            if (parents := self._parents(agent, state, course, rng)) is not None:
                model = next(each for each in free if each.name == arms[position].model)
                question = self._asked(agent, model, parents, state, course, rng)
                if question is not None:
                    return question
        return None

    def read(self, operator: str, parents: Sequence[int], answer: Answered | Failed) -> Proposal | str:
        """What an answer comes to, or why to nothing, in one line.

        Args:
            operator: name of the agent.
            parents: ids.
            answer: as it was stored.
        """
        if isinstance(answer, Failed):
            return answer.reason
        agent = AGENTS.get(operator)
        if agent is None:
            return f"this version knows no agent {operator!r}"
        brief = self.briefing.of(parents, None)
        made = agent.child(answer.answer, brief, answer.answer.model or "the model")
        return made.reason if isinstance(made, Unread) else made

    def _asked(
        self,
        agent: Agent,
        model: ModelSettings,
        parents: tuple[int, ...],
        state: State,
        course: Course,
        rng: Random,
    ) -> Question | None:
        told, untold = course.memory.lot(rng)
        brief = replace(
            self._brief(agent, parents, state, course, rng), lessons=tuple(held.lesson for held in told)
        )
        prompt = agent.prompt(brief, model)
        if isinstance(prompt, TooLong):
            self.too_long.setdefault(model.name, f"{agent.name}: {prompt.reason}")
            return None
        said = told[: len(prompt.brief.lessons)]  # those that fit
        lessons, kept_back = (tuple(held.number for held in each) for each in (said, untold))
        tools = agent.offered if isinstance(agent, Explore) else ()
        return Question(agent.name, model, parents, prompt.messages, lessons, kept_back, tools=tools)

    def _brief(
        self, agent: Agent, parents: tuple[int, ...], state: State, course: Course, rng: Random
    ) -> AgentBrief:
        direction, diagnoses = "", course.memory.diagnoses
        if isinstance(agent, Draft):
            approaches = APPROACHES.get(self._language, ("",))
            direction = approaches[course.errands.drafts % len(approaches)]
        elif isinstance(agent, Mutate | Explore):
            direction = self._directions.toward(parents[0], state, course, rng)
        failures = course.lineages.of(parents)
        return self.briefing.of(parents, state.calibration, failures, direction, diagnoses=diagnoses)

    def _parents(self, agent: Agent, state: State, course: Course, rng: Random) -> tuple[int, ...] | None:
        """Whom the agent may start from; None: it does not apply."""
        if isinstance(agent, Draft):
            return () if course.errands.drafts < self._drafts(state) else None
        if isinstance(agent, Repair):
            return tuple(course.errands.repairable()[:1]) or None
        if not len(state.archive):
            return None
        one, other = self.select(state, course, rng)
        if isinstance(agent, Cross):
            crossed = one != other and self.settings.control is not Control.NO_CROSSOVER
            return (one, other) if crossed else None
        if isinstance(agent, Edit) and self._kernel_of(one).source.count("\n") < LONG:
            return None
        return (one,)

    def _drafts(self, state: State) -> int:
        """How many first kernels are asked for: one by each approach, more where none can be measured."""
        approaches = len(APPROACHES.get(self._language, ("",)))
        return approaches if len(state.archive) else ROUNDS * approaches

    def _order(self, arms: Sequence[Arm], rng: Random, bandit: Bandit) -> list[int]:
        weights = [self.settings.weights.get(arm.operator, 1.0) for arm in arms]
        if self.settings.control is Control.RANDOM_OPERATOR:
            return shuffled(weights, rng)
        return bandit.order(arms, rng, weights)
