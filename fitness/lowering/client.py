"""Lowers kernel sources to launch plans, in confined children. Imports no torch."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fitness import plan as plans
from fitness.card import Case
from fitness.lowering import limits
from fitness.lowering import source as sources
from fitness.lowering.children import ChildError, Children, read_small
from fitness.lowering.confinement import Limits
from fitness.lowering.cut import Cut, CutError, cut
from fitness.lowering.facts import CARDS
from fitness.lowering.jobs import (
    COMPILE,
    COMPILE_ANSWER,
    TRACE,
    TRACE_ANSWER,
    CompileJob,
    Failed,
    Refusal,
    Traced,
    TraceJob,
)
from fitness.lowering.jobs import Compiled as Compiled
from fitness.lowering.tidy import without_unused
from fitness.plan import LaunchPlan
from fitness.target import DeviceError
from populations.kernel import Kernel
from populations.verdict import Outcome, Stage, Verdict

MODULE, PLAN = "device.py", "plan.json"
BINARY_BYTES = 64 << 20
SCRATCH = "lower-"
MOST_ATTEMPTS = 8  # configurations of an autotuned function that are tried before it counts as uncompilable
_CASES = TypeAdapter(tuple[Case, ...])


@dataclass(frozen=True)
class Lowered:
    """A source made ready for any judge: a folder with ``plan.json``, the cut module and the binaries."""

    kernel: Kernel
    folder: Path
    plan: LaunchPlan

    @property
    def sha(self) -> str:
        """Hash of the plan: equal means equal work."""
        return self.plan.sha

    @property
    def traits(self) -> dict[str, int]:
        """Static facts of the whole plan: the worst kernel's, and how many launches the first case has."""
        found: dict[str, int] = {}
        for binary in self.plan.binaries:
            for name, number in binary.traits.items():
                found[name] = max(number, found.get(name, 0))
        steps = self.plan.cases[0].steps
        return {**found, "launches": sum(step.do == "launch" for step in steps), "steps": len(steps)}


class Lowering:
    """Turns sources into plans; one may be used from several threads at once.

    Args:
        folder: where plans, logs and scratch folders go.
        arch: what is lowered for, one of ``fitness.lowering.facts.CARDS``.
        sandboxed: False only on the user's word.
        limits: of one child.

    Raises:
        DeviceError: an unknown architecture, no gcc, or a child process that does not start.
    """

    def __init__(
        self, folder: Path, *, arch: str = "sm_90", sandboxed: bool = True, limits: Limits | None = None
    ) -> None:
        if arch not in CARDS:
            raise DeviceError(f"cannot lower for {arch}; known: {', '.join(sorted(CARDS))}")
        self._folder = folder.absolute()
        self._arch = arch
        self._folder.mkdir(parents=True, exist_ok=True)
        for left in self._folder.glob(f"{SCRATCH}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._children = Children(
            self._folder / "lowering.log", arch=arch, sandboxed=sandboxed, limits=limits or Limits()
        )

    def lower(self, kernel: Kernel, cases: Sequence[Case], entry: str | None = None) -> Lowered | Verdict:
        """The plan of a source on all cases, or why there is none.

        Args:
            kernel: the source.
            cases: shapes to lower for; each becomes one ``CasePlan`` of the same name.
            entry: name of the function or class to call; None: ``kernel_function``, else ``ModelNew``.

        Raises:
            DeviceError: the machine is at fault.
        """
        source = sources.read(kernel, entry)
        if isinstance(source, Verdict):
            return source
        kept = self._folder / self._key(source, cases)
        if (kept / PLAN).exists():
            return Lowered(kernel, kept, plans.read((kept / PLAN).read_bytes()))
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=SCRATCH) as scratch:
            try:
                made = _Attempts(self._children, Path(scratch), source, tuple(cases), self._arch).run()
            except ChildError as why:
                return _verdict(why.status, str(why))
            if isinstance(made, Verdict):
                return made
            _move(made.folder, kept)
        return Lowered(kernel, kept, made.plan)

    def close(self) -> None:
        """End the children."""
        self._children.close()

    def _key(self, source: sources.Source, cases: Sequence[Case]) -> str:
        triton = metadata.version("triton")
        parts = [source.kernel.sha, source.entry, self._arch, triton, _CASES.dump_json(tuple(cases)).decode()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class _Attempts:
    """Trace and compile; again with the next configuration of an autotuned function that does not compile."""

    def __init__(
        self, children: Children, scratch: Path, source: sources.Source, cases: tuple[Case, ...], arch: str
    ) -> None:
        self._children = children
        self._scratch = scratch
        self._source = source
        self._cases = cases
        self._arch = arch

    def run(self) -> Lowered | Verdict:
        """The lowered source, in the scratch folder still."""
        asked: dict[str, int] = {}
        for attempt in range(MOST_ATTEMPTS):
            traced = self._traced(attempt, asked)
            if isinstance(traced, Verdict):
                return traced
            wrong = limits.fault(traced, self._cases)
            if wrong:
                return _verdict("rejected", wrong)
            try:
                device = cut(self._source.tree, [spec.function for spec in traced.kernels])
            except CutError as why:
                return _verdict("rejected", str(why))
            folder, compiled = self._compiled(attempt, traced, device)
            if isinstance(compiled, Compiled):
                return self._assembled(folder, traced, compiled, device)
            function = traced.kernels[compiled.failed].function
            asked[function] = asked.get(function, 0) + 1
            if attempt + 1 == MOST_ATTEMPTS or asked[function] >= traced.tuned.get(function, 1):
                line = device.lines.get(compiled.line or 0)
                return _verdict(
                    "uncompilable", f"line {line}: {compiled.reason}" if line else compiled.reason
                )
        raise AssertionError("the last attempt returns")

    def _traced(self, attempt: int, asked: dict[str, int]) -> Traced | Verdict:
        folder = self._scratch / f"trace-{attempt}"
        folder.mkdir()
        (folder / "kernel.py").write_text(self._source.kernel.source)
        job = TraceJob(entry=self._source.entry, cases=self._cases, asked=asked)
        text = self._children.ask("trace", folder, TRACE.dump_json(job))
        try:
            answer = TRACE_ANSWER.validate_json(text)
        except ValidationError as why:
            error = why.errors()[-1]
            where = ".".join(map(str, error["loc"]))
            return _verdict("rejected", f"the host function gives no plan: {where}: {error['msg']}"[:300])
        if isinstance(answer, Refusal):
            return _verdict(answer.status, answer.reason)
        return answer

    def _compiled(self, attempt: int, traced: Traced, device: Cut) -> tuple[Path, Compiled | Failed]:
        folder = self._scratch / f"compile-{attempt}"
        folder.mkdir()
        job = CompileJob(text=device.text, dotted=device.dotted, specs=traced.kernels)
        text = self._children.ask("compile", folder, COMPILE.dump_json(job))
        try:
            answer = COMPILE_ANSWER.validate_json(text)
        except ValidationError as why:
            raise ChildError(
                "crashed", f"the compiler's answer is not understood: {why.errors()[0]['msg']}"
            ) from why
        count = len(traced.kernels)
        if (len(answer.binaries) if isinstance(answer, Compiled) else answer.failed + 1) > count:
            raise ChildError("crashed", "the compiler's answer is of other kernels")
        return folder, answer

    def _assembled(self, folder: Path, traced: Traced, compiled: Compiled, device: Cut) -> Lowered:
        cases = tuple(without_unused(case) for case in traced.cases)
        plan = LaunchPlan(self._arch, MODULE, traced.kernels, compiled.binaries, cases, traced.choices)
        made = self._scratch / "made"
        made.mkdir()
        for binary in plan.binaries:
            for name in binary.files.values():
                if "/" in name or not (data := read_small(folder / name, BINARY_BYTES)):
                    raise ChildError("crashed", f"the compiler left no file {name[:100]}")
                (made / name).write_bytes(data)
        (made / MODULE).write_text(device.text)
        (made / PLAN).write_bytes(plans.write(plan))
        return Lowered(self._source.kernel, made, plan)


def _verdict(status: str, reason: str) -> Verdict:
    outcome = (
        Outcome(status)
        if status in ("incorrect", "timed_out", "crashed", "uncompilable")
        else Outcome.REJECTED
    )
    return Verdict(outcome, Stage.BUILD, reason)


def _move(made: Path, kept: Path) -> None:
    try:
        made.replace(kept)
    except OSError:  # another thread lowered the same source meanwhile
        if not (kept / PLAN).exists():
            raise
