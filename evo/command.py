"""The command line: a thin layer over ``evo.search``, ``fitness.verify`` and ``populations.open``.

Heavy imports stand inside the commands, so ``--help`` is instant. Whatever a user can get wrong ends here as
one line that says what, where and what to do, with exit code 2.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from evo import profiling, reading, saying

USAGE, INTERRUPTED = 2, 130

app = typer.Typer(
    name="kernel-evo",
    help="Evolutionary search for compute kernels: verified on real hardware, faster than your baseline.",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Problem = Annotated[str, typer.Argument(help="A built-in problem's name, or the path of a problem file.")]
Target = Annotated[str, typer.Option(help="auto, cpu, cuda, or package.module:Name of your own.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model that agents ask: NAME, or NAME@URL; may be repeated."),
]
Unsandboxed = Annotated[
    bool, typer.Option("--unsandboxed", help="Run candidates unconfined; verdicts say so.")
]
Entry = Annotated[str | None, typer.Option(help="The function to call, for languages that let you choose.")]


@app.command()
def run(
    problem: Problem,
    target: Target = "auto",
    seeds: Annotated[
        list[Path] | None, typer.Option(help="A file with a starting kernel; may be repeated.")
    ] = None,
    entry: Entry = None,
    model: Models = None,
    effort: Annotated[str, typer.Option(help="quick (about 3 minutes) or full (half an hour).")] = "quick",
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="A new or empty folder [runs/DATE-PROBLEM].")] = None,
    evaluations: Annotated[int | None, typer.Option(help="Stop after this many judged kernels.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this much wall time.")] = None,
    usd: Annotated[float | None, typer.Option(help="Stop before models cost more US dollars.")] = None,
    tokens: Annotated[int | None, typer.Option(help="Stop before models take more tokens.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides every choice of the search.")] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="Search without one part: best-of-n, random-parent, no-crossover, random-operator."
        ),
    ] = None,
    as_json: saying.Json = False,
    unsandboxed: Unsandboxed = False,
) -> None:
    """Evolve a kernel for a problem until the budget is spent."""
    from evo import session
    from evo.progress import watcher
    from evo.settings import settings

    _refuse_entry(entry)
    chosen = settings(
        effort,
        config,
        evaluations=evaluations,
        minutes=minutes,
        usd=usd,
        tokens=tokens,
        seed=seed,
        control=control,
        models=model or None,
    )
    with _terminable(), watcher(not as_json) as watching:
        path = session.start(
            problem,
            chosen,
            watching,
            target=target,
            seeds=seeds or [],
            run_dir=run_dir,
            sandboxed=not unsandboxed,
        )
    _closing(path, as_json)


@app.command()
def resume(run: reading.RunFolder, as_json: saying.Json = False) -> None:
    """Go on with a run that was stopped or killed."""
    from evo import session
    from evo.progress import watcher

    with _terminable(), watcher(not as_json) as watching:
        path = session.resume(run, watching)
    _closing(path, as_json)


@app.command()
def propose(
    run: reading.RunFolder,
    n: Annotated[int, typer.Option("-n", help="How many proposals.", min=1)] = 16,
    model: Models = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings: its models.")] = None,
    usd: Annotated[float | None, typer.Option(help="Ask for no more than so many US dollars.")] = None,
    tokens: Annotated[int | None, typer.Option(help="Ask for no more than so many tokens.")] = None,
    as_json: saying.Json = False,
) -> None:
    """Leave children of a run's kernels in RUN/proposals, without a device; `judge` judges them.

    Models are asked: those named here, else the run's; where there is none, operators make the children.
    """
    from evo.ledger import Caps
    from evo.proposing import propose
    from evo.settings import settings

    chosen = settings(file=config, models=model or None, usd=usd, tokens=tokens)
    with _terminable():
        try:
            caps = Caps(usd=chosen.usd, tokens=chosen.tokens)
            told = propose(run, n, saying.aside, chosen.models, caps)
        except KeyboardInterrupt:
            _one_line(f"interrupted; what was made is in {run}/proposals, open requests count as spent")
            raise typer.Exit(INTERRUPTED) from None
    saying.data(told.to_json(run), as_json, ((line,) for line in saying.proposed(run, told)))
    saying.end(bool(told.ids))


@app.command()
def judge(run: reading.RunFolder, as_json: saying.Json = False) -> None:
    """Judge what `propose` left in RUN/proposals, without a model, and write the next snapshot."""
    from evo import session
    from evo.progress import watcher

    with _terminable(), watcher(not as_json) as watching:
        busy = session.judge(run, watching)
    if busy or as_json:
        _closing(run, as_json, idle=not busy)
    saying.data(None, False, [(f"nothing to judge in {run}/proposals; the snapshot is up to date",)])


@app.command()
def verify(
    kernel: Annotated[Path, typer.Argument(help="A file with a kernel.")],
    problem: Problem,
    target: Target = "auto",
    entry: Entry = None,
    arch: Annotated[
        str, typer.Option("--for", help="Lower a Triton kernel for this, where there is no GPU.")
    ] = "sm_90",
    as_json: saying.Json = False,
    unsandboxed: Unsandboxed = False,
) -> None:
    """Put one file through the whole gate and the timer.

    A Triton kernel (.py) on a machine without a GPU has its numbers checked; its speed stays unknown.
    """
    from evo.verifying import verified

    with _terminable():
        verdict, told = verified(kernel, problem, target, not unsandboxed, entry, arch)
    if as_json:
        saying.data(told, as_json)
    else:
        from evo.tables import print_verdict

        print_verdict(verdict, str(kernel), export=told["export"])
    # Where nothing can be timed, right is all that a kernel can be.
    saying.end(told["status"] == ("measured" if told["numerics"] == "device" else "correct"))


@app.command()
def problems(
    name: Annotated[
        str | None, typer.Argument(help="A built-in problem's name, or the path of a problem file.")
    ] = None,
    signature: Annotated[
        bool, typer.Option("--signature", help="Print the entry a kernel must have.")
    ] = False,
    target: Target = "auto",
    as_json: saying.Json = False,
) -> None:
    """List the built-in problems, or describe one."""
    from evo import catalogue

    if name is None:
        listed = catalogue.problems(target)
        saying.data(listed, as_json, catalogue.rows(listed))
        return
    card = catalogue.card(name, target)
    if signature and not as_json:
        print(catalogue.entry(card, target))
    else:
        saying.data(catalogue.described(card, target), as_json, catalogue.lines(card, target))


@app.command()
def seeds(
    problem: Annotated[str | None, typer.Argument(help="A built-in problem's name.")] = None,
    as_json: saying.Json = False,
) -> None:
    """List the built-in starting kernels."""
    from evo import catalogue

    found = catalogue.seeds(problem)
    saying.data(found, as_json, ((s["problem"], s["name"], s["summary"], s["path"]) for s in found))


@app.command()
def doctor(
    model: Models = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings: its models.")] = None,
    as_json: saying.Json = False,
) -> None:
    """Say what this machine has and lacks, and whether models answer."""
    from dataclasses import asdict

    from evo.doctor import examine, models
    from evo.settings import settings

    spoken_to = settings(file=config, models=model or None).models
    findings = [*examine(), *models(spoken_to)]
    well = all(f.ok for f in findings)
    rows = (("ok" if f.ok else "NO", f.name, f.value, f.cure or "") for f in findings)
    saying.data({"ok": well, "findings": [asdict(f) for f in findings]}, as_json, rows)
    saying.end(well)


for _command in (reading.status, reading.top, reading.show, reading.diff, reading.lineage, reading.export):
    app.command()(_command)
for _command in (profiling.profile, reading.check, reading.replay):
    app.command()(_command)


def run_command_line(arguments: list[str]) -> int:
    """Run one command.

    Args:
        arguments: without the program's name.

    Returns:
        The exit code: 0 done, 1 the answer is no, 2 bad input or usage, 130 interrupted, all saved.
    """
    arguments = arguments or ["--help"]
    try:
        for argument in arguments:
            argument.encode()
        code = typer.main.get_command(app).main(args=arguments, prog_name="kernel-evo", standalone_mode=False)
        print(end="", flush=True)  # a full disk shows here, not after the last word
    except typer.TyperException as error:
        return _one_line(f"{error.format_message()} (`kernel-evo --help` lists the commands)")
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except BrokenPipeError:
        _hush()  # the reader has left
        return 0
    except _told_in_a_line() as error:
        return _one_line(str(error))
    except UnicodeEncodeError as error:  # Python stands a "surrogate" in for each byte that is not UTF-8
        return _one_line(f"{error.object!a} is not UTF-8 text: rename the file or folder")
    except OSError as error:
        return _one_line(_told_of(error))
    return code if isinstance(code, int) else 0


def _closing(path: Path, as_json: bool, idle: bool = False) -> None:
    """What a finished run ends with: the export, and the table or the JSON; 1 where nothing was measured.

    Args:
        path: the run.
        as_json: the JSON.
        idle: there was nothing to do, which is no failure.
    """
    import populations
    from evo.export import export
    from evo.summary import run_summary
    from evo.toolset import SUFFIXES

    with populations.open(path) as run:
        best = run.best
        exported = path / f"best{SUFFIXES[best.language]}" if best is not None else None
        if exported is not None:
            export(run, "best", exported)
        if as_json:
            saying.data({**run_summary(run), "exported": str(exported) if exported else None}, as_json)
        else:
            from evo.tables import print_closing

            print_closing(run, exported)
    saying.end(best is not None or idle)


def _refuse_entry(entry: str | None) -> None:
    if entry is not None:
        from evo.settings import SettingsError

        raise SettingsError(
            f"--entry {entry}: a C++ kernel's entry is always kernel_function; leave --entry out"
        )


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, or a terminal that closes, end a run as Ctrl-C does: saved, and said how to go on."""

    def stop(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    ours = [name for name in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(name) != signal.SIG_IGN]
    before = {name: signal.signal(name, stop) for name in ours}  # nohup ignores SIGHUP: so do we
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise typer.Exit(_interrupted(interrupt)) from None
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    path = getattr(interrupt, "path", None)  # of session.Interrupted
    if path is None:
        _one_line("interrupted before anything was judged")
    else:
        saved = f"{getattr(interrupt, 'evaluations', 0)} judged kernels are saved"
        again = getattr(interrupt, "command", "resume")
        _one_line(f"interrupted; {saved}; go on with: kernel-evo {again} {path}")
    return INTERRUPTED


def _told_in_a_line() -> tuple[type[Exception], ...]:
    """The errors that speak for themselves; imported only once something was raised."""
    from evo.settings import SettingsError
    from fitness import FitnessError
    from populations import RunError

    return (SettingsError, FitnessError, RunError)


def _hush() -> None:
    """Let what is still to be said go nowhere: Python flushes at exit, and would fail again."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _told_of(error: OSError) -> str:
    """What the system refused, in words; cures for the usual reasons."""
    cures = {
        errno.ENOSPC: "free some space",
        errno.EDQUOT: "free some space",
        errno.EMFILE: "allow more open files (ulimit -n)",
        errno.ENOMEM: "free some memory",
        errno.EAGAIN: "allow more processes (ulimit -u)",
    }
    where = f"{error.filename}: " if error.filename else ""
    cure = cures.get(error.errno or 0, "check that it is there and that you may read and write it")
    return f"{where}{error.strerror or error}; {cure}"


def _one_line(message: str) -> int:
    try:
        print(f"kernel-evo: {' '.join(message.split())}", file=sys.stderr, flush=True)
    except OSError:
        _hush()  # nobody can be told; the exit code still says it
    return USAGE
