"""Start a run or take one over: put log, population, strategy and device together for the coordinator."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from deap import base

import fitness
from evo import models
from evo.agency import Agency
from evo.calls import Calls
from evo.coordinator import Coordinator
from evo.folded import Search, found
from evo.inbox import Inbox
from evo.ledger import Caps
from evo.settings import Settings, SettingsError, checked
from evo.starting import admitted, built_in, given
from evo.toolset import LANGUAGES, SUFFIXES, compose
from evo.watcher import Watcher
from fitness.card import ProblemCard
from fitness.target import DeviceError, Target
from fitness.verify import resolved
from populations import folder as folders
from populations.events import Started
from populations.folder import RunError
from populations.kernel import source_sha
from populations.log import EventLog
from populations.text import put, read_text


class Interrupted(KeyboardInterrupt):
    """Somebody stopped a run; everything judged is saved in its folder."""

    def __init__(self, path: Path, evaluations: int, command: str = "resume") -> None:
        super().__init__(path, evaluations)
        self.path, self.evaluations, self.command = path, evaluations, command


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
        _run(_coordinator(found(log, settings, toolbox), opener, watcher, speakers, opened), path)
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
        search = found(log, settings, toolbox)
        speakers = models.opened(settings)
        _run(_coordinator(search, _reopener(begun, path), watcher, speakers), path, "resume")
    return path


def judge(path: Path, watcher: Watcher, toolbox: base.Toolbox | None = None) -> bool:
    """Judge what was proposed elsewhere, and write the snapshot that the next proposals are based on.

    The run's budgets are those of its own search: what is proposed, and what the run itself left to judge, is
    judged whatever they say. No model is asked.

    Args:
        path: the run's folder.
        watcher: told of everything.
        toolbox: as the run was started with, where that was not our own.

    Returns:
        Whether there was anything to judge.

    Raises:
        SettingsError, FitnessError, RunError, Interrupted: as for ``start``.
    """
    with EventLog.open(path) as log:
        begun = log.started()
        settings = checked(begun.settings["search"], f"settings of run {path}")
        settings = settings.model_copy(update={each.name: None for each in fields(Caps)})
        search = found(log, settings, toolbox)
        inbox = Inbox(log, search.language, watcher.note)
        left = bool(search.state.waiting) or search.state.next_ask <= search.strategy.seeds
        if busy := inbox.look(search.course) or left:
            silent = models.Speakers(lines=())
            _run(_coordinator(search, _reopener(begun, path), watcher, silent, inbox=inbox), path, "judge")
        log.write_snapshot()
        _keep_problem(search.card, path)
    return busy


def _run(coordinator: Coordinator, path: Path, command: str = "run") -> None:
    try:
        coordinator.run(resuming=command != "run")
    except KeyboardInterrupt:
        raise Interrupted(path, coordinator.evaluations, _next(command)) from None
    except (DeviceError, OSError) as error:
        again = f"go on with `kernel-evo {_next(command)} {path}`"
        raise DeviceError(f"{error}; {coordinator.evaluations} judged kernels are saved: {again}") from error


def _next(command: str) -> str:
    """The command that goes on where this one was stopped."""
    return "judge" if command == "judge" else "resume"


def _coordinator(
    search: Search,
    opener: Callable[[], Target],
    watcher: Watcher,
    speakers: models.Speakers,
    target: Target | None = None,
    inbox: Inbox | None = None,
) -> Coordinator:
    for line in speakers.lines:
        watcher.note(line)
    agency: Agency | Inbox | None = inbox
    if inbox is None and search.settings.models:
        agency = Agency(search.delegation(), Calls(search.log.folder, speakers.chats), speakers.probes)
    return Coordinator(
        search.log, search.state, search.course, search.strategy, search.settings, opener, watcher,
        search.brief.cores, target, agency=agency,
    )  # fmt: skip


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


def _reopener(begun: Started, path: Path) -> Callable[[], Target]:
    """Opens the device of a run that was begun."""
    return _opener(
        begun.target, begun.problem, path, begun.seed, begun.settings["sandboxed"], begun.card["sha"]
    )


def _keep_problem(card: ProblemCard, path: Path) -> None:
    """RUN/problem.py: the problem's file beside the snapshot, which agents elsewhere are told from."""
    with suppress(OSError, UnicodeDecodeError):
        text = read_text(Path(card.path))
        if source_sha(text.removeprefix("\N{BYTE ORDER MARK}")) == card.sha:
            put(path / folders.PROBLEM, text.encode())


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
