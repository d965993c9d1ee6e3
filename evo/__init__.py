"""Evolutionary search for compute kernels: what to try next, for how long, what came of it.

    run = evo.search("softmax", target="cpu", minutes=2)   # a populations.Run, as a command would make it
    run.best.source, run.best.speedup, run.frame("individuals")

    toolbox = evo.toolbox("softmax")
    toolbox.register("mutate", my_operator)
    evo.search("softmax", toolbox=toolbox)

Errors, one line each: ``evo.settings.SettingsError``, ``fitness.FitnessError``, ``populations.RunError``.
Importing this package loads nothing heavy; the process that searches never loads torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deap import base

    from populations.run import Run

__all__ = ["__version__", "search", "toolbox"]
__version__ = "0.1.0"


def search(
    problem: str | Path,
    target: str = "auto",
    *,
    minutes: float | None = None,
    evaluations: int | None = None,
    toolbox: base.Toolbox | None = None,
    run_dir: Path | str | None = None,
    seeds: Sequence[Path | str] = (),
    effort: str = "quick",
    sandboxed: bool = True,
    progress: bool = False,
    **settings: Any,
) -> Run:
    """Evolve a kernel; what ``kernel-evo run`` does.

    Args:
        problem: name of a built-in problem, or path of a problem file.
        target: "auto", "cpu", or "package.module:Name".
        minutes: wall time to spend.
        evaluations: kernels to judge. Where neither is given, the effort decides.
        toolbox: from ``evo.toolbox``, with whatever you registered instead.
        run_dir: an empty or new folder; None: runs/DATE-problem.
        seeds: files with starting kernels, beside the built-in ones.
        effort: "quick" or "full".
        sandboxed: False runs candidates unconfined.
        progress: whether to say on standard error how it goes.
        settings: any other key of ``evo.settings.Settings``, such as ``models=["gpt-5"]``.

    Returns:
        The finished run, open for reading.

    Raises:
        SettingsError, FitnessError, RunError: what, where, what to do, in one line.
        KeyboardInterrupt: everything judged is saved; ``kernel-evo resume`` goes on.
    """
    import populations
    from evo import session
    from evo.progress import watcher
    from evo.settings import settings as chosen

    with watcher(progress) as watching:
        path = session.start(
            str(problem),
            chosen(effort, None, minutes=minutes, evaluations=evaluations, **settings),
            watching,
            target=target,
            seeds=[Path(file) for file in seeds],
            run_dir=None if run_dir is None else Path(run_dir),
            sandboxed=sandboxed,
            toolbox=toolbox,
        )
    return populations.open(path)


def toolbox(problem: str | Path | None = None, target: str = "auto", **settings: Any) -> base.Toolbox:
    """The tools that a search of this problem on this target uses, for you to replace; see ``evo.toolset``.

    Args:
        problem: name or path; all problems of a target share its tools so far.
        target: "auto", "cpu", or "package.module:Name".
        settings: any key of ``evo.settings.Settings``.
    """
    from evo.settings import settings as chosen
    from evo.toolset import LANGUAGES, compose

    del problem
    return compose(LANGUAGES.get(target, "cpp"), chosen(**settings))
