"""What a log and its settings come to: population, course, strategy; before there is a device or a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from deap import base
from pydantic import TypeAdapter

from evo.arms import Arm, Weights
from evo.bandit import Bandit
from evo.briefing import Briefing
from evo.catalogue import entry
from evo.course import SEED, Course
from evo.delegating import Delegation
from evo.ledger import Caps, Ledger
from evo.settings import Settings
from evo.strategy import Strategy
from evo.talking import explorer
from evo.toolset import LANGUAGES, Mixture, compose, structure
from fitness import machine
from fitness.card import ProblemCard
from operators.proposal import Brief, Proposal
from populations.kernel import Kernel
from populations.log import EventLog
from populations.state import State


@dataclass(frozen=True)
class Search:
    """A run as its log has it; see ``found``.

    Attributes:
        log, settings, toolbox: where it is from.
        state, course: after the log's events.
        card: the problem.
        language: of its kernels.
        brief: for operators.
        strategy: what to try next, without models.
        kernel_of: the kernel of an individual.
    """

    log: EventLog
    settings: Settings
    toolbox: base.Toolbox
    state: State
    course: Course
    card: ProblemCard
    language: str
    brief: Brief
    strategy: Strategy
    kernel_of: Callable[[int], Kernel]

    def delegation(self, device: bool = True) -> Delegation:
        """What models are asked; ``device``: whether there is one on which they may try kernels."""
        assert self.state.started is not None
        log, seed = self.log, self.state.started.seed
        briefing = Briefing(
            self.card,
            self.language,
            entry(self.card, self.state.started.target),
            seed,
            self.kernel_of,
            log.proposed,
            log.verdict,
        )
        mutate = self.toolbox.mutate.func
        structural = mutate.arms if isinstance(mutate, Mixture) else [Arm(getattr(mutate, "name", "mutate"))]
        return Delegation(
            self.settings, briefing, self.language, structural, self.strategy.select, self.kernel_of,
            explorer(briefing) if device else None,
        )  # fmt: skip


def found(log: EventLog, settings: Settings, toolbox: base.Toolbox | None = None) -> Search:
    """A run as its log has it.

    Args:
        log: the run, or a snapshot of it.
        settings: budgets and shares.
        toolbox: None: our own.

    Raises:
        SettingsError: an operator that the settings name is not there.
        RunError: the log cannot be read.
    """
    begun = log.started()
    language = LANGUAGES.get(begun.target, "cpp")
    toolbox = toolbox or compose(language, settings)
    state, course = replayed(log, settings)
    card = TypeAdapter(ProblemCard).validate_python(begun.card)
    brief = _brief(card, state.calibration.machine if log.readonly and state.calibration else {})
    seeds = [
        Proposal(Kernel(seed["source"], seed["language"]), SEED, seed["rationale"])
        for seed in begun.settings["seeds"]
    ]
    kernel_of = _kernels(log, state)
    strategy = Strategy(toolbox, settings, brief, seeds, kernel_of)
    return Search(log, settings, toolbox, state, course, card, language, brief, strategy, kernel_of)


def replayed(log: EventLog, settings: Settings) -> tuple[State, Course]:
    """Population and course after all events of a log; no device, no operator."""
    state = State(log, settings.population, settings.per_structure, structure)
    parallel = sum(model.parallel for model in settings.models)
    bandit, ledger = Bandit(Weights.of(settings, max(1, parallel))), Ledger(Caps.of(settings))
    course = Course(state, settings.tune_evaluations, bandit, ledger, remembers=bool(settings.models))
    for record in log.records():
        state.apply(record.event, record.time)
        course.apply(record.event)
    return state, course


def _kernels(log: EventLog, state: State) -> Callable[[int], Kernel]:
    """The kernel of an id: from the archive, else from the log."""

    @lru_cache(maxsize=256)
    def stored(id: int) -> Kernel:
        return log.kernel(log.proposed(id).source_sha)

    def kernel(id: int) -> Kernel:
        one = state.archive.get(id)
        return one.kernel if one is not None and one.kernel is not None else stored(id)

    return kernel


def _brief(card: ProblemCard, known: Mapping[str, str]) -> Brief:
    """What operators are told; of another machine, as far as it is ``known``."""
    given = card.given
    return Brief(
        problem=card.name,
        signature=card.signature(),
        inputs=len(given.inputs) + len(given.parameters),
        outputs=len(given.outputs),
        cores=int(known.get("cores") or machine.cores()),
        cache_bytes=int(known.get("cache_bytes") or machine.cache_bytes()),
        line_bytes=machine.line_bytes(),
        vector_bytes=int(known.get("vector_bytes") or machine.vector_bytes()),
    )
