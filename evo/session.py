"""Start a run or take one over: put log, population, strategy and device together for the coordinator."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from deap import base
from pydantic import TypeAdapter

import fitness
from evo import models
from evo.agency import Agency
from evo.arms import Arm, Weights
from evo.bandit import Bandit
from evo.briefing import Briefing
from evo.calls import Calls
from evo.catalogue import entry
from evo.coordinator import Coordinator, Watcher
from evo.course import SEED, Course
from evo.delegating import Delegation
from evo.ledger import Caps, Ledger
from evo.settings import Settings, SettingsError, checked
from evo.starting import admitted, built_in, given
from evo.strategy import Strategy
from evo.toolset import LANGUAGES, SUFFIXES, Mixture, compose, structure
from fitness import machine
from fitness.card import ProblemCard
from fitness.target import DeviceError, Target
from fitness.verify import resolved
from operators.proposal import Brief, Proposal
from populations import folder as folders
from populations.events import Started
from populations.folder import RunError
from populations.kernel import Kernel
from populations.log import EventLog
from populations.state import State


class Interrupted(KeyboardInterrupt):
    """Somebody stopped a run; everything judged is saved in its folder."""

    def __init__(self, path: Path, evaluations: int) -> None:
        super().__init__(path, evaluations)
        self.path, self.evaluations = path, evaluations


def start(
    problem: str,
    settings: Settings,
    watcher: Watcher,
    *,
    target: str = "auto",
    seeds: Sequence[Path] = (),
    run_dir: Path | None = None,
    sandboxed: bool = True,
    toolbox: base.Toolbox | None = None,
) -> Path:
    """Make a run and search until its budget is spent.

    Args:
        problem: name of a built-in problem, or path of a problem file.
        settings: budgets and shares.
        watcher: told of everything.
        target: "auto", "cpu", "cuda", or "package.module:Name".
        seeds: files with starting kernels, beside the built-in ones.
        run_dir: an empty or new folder; None: runs/DATE-problem.
        sandboxed: False only on the user's word.
        toolbox: other tools than our own.

    Returns:
        The run's folder.

    Raises:
        SettingsError, FitnessError, RunError: what, where, what to do.
        Interrupted: somebody stopped it; everything judged is saved.
    """
    target = _chosen(target, seeds)
    problem = str(Path(problem).resolve()) if Path(problem).is_file() else problem
    language = LANGUAGES.get(target, "cpp")
    toolbox = toolbox or compose(language, settings)
    starting = [*given(seeds, language), *built_in(problem, language)]
    speakers = models.opened(settings)
    path = _folder(run_dir, problem)
    told: dict[str, Any] = {"search": settings.model_dump(mode="json"), "sandboxed": sandboxed}
    opener = _opener(target, problem, path, settings.seed, sandboxed)
    opened: Target | None = None
    try:
        opened = opener()
        kernels = admitted(opened, starting, problem, language, drafts=bool(settings.models))
        told["seeds"] = [asdict(seed.kernel) | {"rationale": seed.rationale} for seed in kernels]
        folders.make_folder(path, _toml({"problem": problem, "target": target, **told["search"]}))
        log = EventLog.create(path, Started(problem, target, settings.seed, told, asdict(opened.card)))
    except BaseException as error:
        if opened is not None:
            opened.close()
        if run_dir is None and not (isinstance(error, DeviceError) and _logged(path)):
            shutil.rmtree(path, ignore_errors=True)
        raise
    with log:
        _run(_coordinator(log, toolbox, settings, opener, watcher, speakers, opened), path)
    return path


def resume(path: Path, watcher: Watcher, toolbox: base.Toolbox | None = None) -> Path:
    """Take over a run that was stopped or killed, and go on until its budget is spent.

    Args:
        path: the run's folder.
        watcher: told of everything.
        toolbox: as the run was started with, where that was not our own.

    Raises:
        SettingsError, FitnessError, RunError, Interrupted: as for ``start``.
    """
    with EventLog.open(path) as log:
        begun = log.started()
        settings = checked(begun.settings["search"], f"settings of run {path}")
        toolbox = toolbox or compose(LANGUAGES.get(begun.target, "cpp"), settings)
        speakers = models.opened(settings)
        opener = _opener(
            begun.target, begun.problem, path, begun.seed, begun.settings["sandboxed"], begun.card["sha"]
        )
        _run(_coordinator(log, toolbox, settings, opener, watcher, speakers), path, resuming=True)
    return path


def replayed(log: EventLog, settings: Settings) -> tuple[State, Course]:
    """Population and course after all events of a log; no device, no operator."""
    state = State(log, settings.population, settings.per_structure, structure)
    parallel = sum(model.parallel for model in settings.models)
    bandit, ledger = Bandit(Weights.of(settings, max(1, parallel))), Ledger(Caps.of(settings))
    course = Course(state, settings.tune_evaluations, bandit, ledger)
    for record in log.records():
        state.apply(record.event, record.time)
        course.apply(record.event)
    return state, course


def _run(coordinator: Coordinator, path: Path, resuming: bool = False) -> None:
    try:
        coordinator.run(resuming)
    except KeyboardInterrupt:
        raise Interrupted(path, coordinator.evaluations) from None
    except (DeviceError, OSError) as error:
        saved = f"{coordinator.evaluations} judged kernels are saved: go on with `kernel-evo resume {path}`"
        raise DeviceError(f"{error}; {saved}") from error


def _coordinator(
    log: EventLog,
    toolbox: base.Toolbox,
    settings: Settings,
    opener: Callable[[], Target],
    watcher: Watcher,
    speakers: models.Speakers,
    target: Target | None = None,
) -> Coordinator:
    for line in speakers.lines:
        watcher.note(line)
    state, course = replayed(log, settings)
    assert state.started is not None
    card = TypeAdapter(ProblemCard).validate_python(state.started.card)
    brief = _brief(card)
    seeds = [
        Proposal(Kernel(seed["source"], seed["language"]), SEED, seed["rationale"])
        for seed in state.started.settings["seeds"]
    ]
    kernel_of = _kernels(log, state)
    strategy = Strategy(toolbox, settings, brief, seeds, kernel_of)
    agency = None
    if settings.models:
        language = LANGUAGES.get(state.started.target, "cpp")
        briefing = Briefing(
            card,
            language,
            entry(card, state.started.target),
            settings.seed,
            kernel_of,
            log.proposed,
            log.verdict,
        )
        mutate = toolbox.mutate.func
        structural = mutate.arms if isinstance(mutate, Mixture) else [Arm(getattr(mutate, "name", "mutate"))]
        delegation = Delegation(settings, briefing, language, structural, strategy.select, kernel_of)
        agency = Agency(delegation, Calls(log.folder, speakers.chats), speakers.probes)
    return Coordinator(
        log, state, course, strategy, settings, opener, watcher, brief.cores, target, agency=agency
    )


def _kernels(log: EventLog, state: State) -> Callable[[int], Kernel]:
    """The kernel of an id: from the archive, else from the log."""

    @lru_cache(maxsize=256)
    def stored(id: int) -> Kernel:
        return log.kernel(log.proposed(id).source_sha)

    def kernel(id: int) -> Kernel:
        one = state.archive.get(id)
        return one.kernel if one is not None and one.kernel is not None else stored(id)

    return kernel


def _chosen(target: str, seeds: Sequence[Path]) -> str:
    """The target to search on; "auto" follows the language of the user's starting kernels.

    Raises:
        SettingsError: they are Triton kernels and there is no GPU.
    """
    python = [file for file in seeds if file.suffix == SUFFIXES["triton"]]
    chosen = resolved(target, "triton" if python else "cpp")
    if python and chosen == "cpu":
        raise SettingsError(
            f"--seeds {python[0]} is a Triton kernel, and a search with it needs a GPU (--target cuda); "
            f"without one, `kernel-evo verify {python[0]} PROBLEM` tells whether it is right"
        )
    return chosen


def _opener(
    target: str, problem: str, path: Path, seed: int, sandboxed: bool, card_sha: str | None = None
) -> Callable[[], Target]:
    def opened() -> Target:
        found = fitness.open_target(
            target, problem, folder=path / folders.ARTIFACTS, seed=seed, sandboxed=sandboxed
        )
        if card_sha is not None and found.card.sha != card_sha:
            found.close()
            raise RunError(f"{problem} has changed since run {path} began: restore it, or start a new run")
        return found

    return opened


def _brief(card: ProblemCard) -> Brief:
    given = card.given
    return Brief(
        problem=card.name,
        signature=card.signature(),
        inputs=len(given.inputs) + len(given.parameters),
        outputs=len(given.outputs),
        cores=machine.cores(),
        cache_bytes=machine.cache_bytes(),
        line_bytes=machine.line_bytes(),
        vector_bytes=machine.vector_bytes(),
    )


def _folder(run_dir: Path | None, problem: str) -> Path:
    if run_dir is not None:
        return folders.make_folder(run_dir)
    return folders.claim_folder(Path(problem).stem, datetime.date.today())


def _logged(path: Path) -> bool:
    """Whether a device left a log, which its error then speaks of."""
    return any(file.stat().st_size for file in (path / folders.ARTIFACTS).glob("*.log"))


def _toml(values: Mapping[str, Any]) -> str:
    """Flat settings as TOML; JSON's strings, numbers, lists and booleans are TOML's too."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if not isinstance(value, dict)]
    tables = [(key, value) for key, value in values.items() if isinstance(value, dict) and value]
    for key, value in values.items():
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            lines.remove(f"{key} = {json.dumps(value)}")
            for each in value:
                lines += [f"\n[[{key}]]", *(f"{name} = {json.dumps(inner)}" for name, inner in each.items())]
    for key, table in tables:
        lines += [
            f"\n[{key}]",
            *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in table.items()),
        ]
    return "\n".join(line for line in lines if not line.endswith("= null")) + "\n"
