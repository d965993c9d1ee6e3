"""Lowers kernel sources to launch plans, in confined children. Imports no torch."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fitness import plan as plans
from fitness.card import Case
from fitness.lowering import limits
from fitness.lowering import source as sources
from fitness.lowering.binaries import Binaries, Uncompilable
from fitness.lowering.children import ChildError, Children, Tally
from fitness.lowering.confinement import Limits
from fitness.lowering.cut import Cut, CutError, Scope, cut
from fitness.lowering.disassembly import Disassembly
from fitness.lowering.facts import CARDS
from fitness.lowering.jobs import TRACE, TRACE_ANSWER, Refusal, Traced, TraceJob
from fitness.lowering.profiles import Profiler
from fitness.lowering.store import Made, Shelf, Store
from fitness.lowering.tidy import launched, without_unused
from fitness.plan import CasePlan, LaunchPlan
from fitness.target import Alike, Built, DeviceError
from fitness.verifier import verifier_hash
from populations.kernel import Kernel
from populations.verdict import Outcome, Stage, Verdict

MODULE, PLAN = "device.py", "plan.json"
SCRATCH = "lower-"
MOST_ATTEMPTS = 8  # configurations of an autotuned function that are tried before it counts as uncompilable
PLANS, PLANS_BYTES = 1024, 2 << 30  # kept in one folder; what was removed is lowered again when asked for
BINARIES, BINARIES_BYTES = 16384, 1 << 30
IN_USE = 128  # the last used stay whatever their size: more than any batch has
_CASES = TypeAdapter(tuple[Case, ...])


@dataclass(frozen=True)
class Lowered:
    """A source made ready for any judge: a folder with ``plan.json``, the cut module and the binaries."""

    kernel: Kernel
    folder: Path
    plan: LaunchPlan
    timed_sha: str | None = None  # None: no case is timed

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

    @property
    def built(self) -> Built:
        """What a target hands on."""
        return Built(self.kernel, self.folder / "plan.json", self.sha, self.traits, timed_sha=self.timed_sha)


class Lowering:
    """Turns sources into plans; one may be used from several threads at once.

    Args:
        folder: where plans, logs and scratch folders go.
        arch: what is lowered for, one of ``fitness.lowering.facts.CARDS``.
        multiprocessors: of the card lowered for, which host code may ask for; None: those of ``CARDS``.
        sandboxed: False only on the user's word.
        limits: of one job of a child.
        cores: children at work at once, over all threads that lower; None: one for each processor core.
        plans: that stay in the folder; those used longest ago go first.

    Raises:
        DeviceError: an unknown architecture, no gcc, or a child process that does not start.
    """

    def __init__(
        self,
        folder: Path,
        *,
        arch: str = "sm_90",
        multiprocessors: int | None = None,
        sandboxed: bool = True,
        limits: Limits | None = None,
        cores: int | None = None,
        plans: int = PLANS,
    ) -> None:
        if arch not in CARDS:
            raise DeviceError(f"cannot lower for {arch}; known: {', '.join(sorted(CARDS))}")
        self._folder = folder.absolute()
        self._arch, self._multiprocessors = arch, multiprocessors
        self._folder.mkdir(parents=True, exist_ok=True)
        for left in self._folder.glob(f"{SCRATCH}*"):
            shutil.rmtree(left, ignore_errors=True)
        shelf = self._folder / "plans"
        self._plans = Shelf(shelf, entries=plans, most_bytes=PLANS_BYTES, least=min(plans, IN_USE))
        store = Store(self._folder / "binaries", entries=BINARIES, most_bytes=BINARIES_BYTES, least=IN_USE)
        self._children = Children(
            self._folder / "lowering.log",
            arch=arch,
            multiprocessors=multiprocessors,
            sandboxed=sandboxed,
            limits=limits or Limits(),
            most=cores or len(os.sched_getaffinity(0)),
        )
        self._binaries = Binaries(self._children, store, arch)
        self._profiler = Profiler(Disassembly(arch, sandboxed=sandboxed), arch)

    def lower(self, kernel: Kernel, cases: Sequence[Case], entry: str | None = None) -> Lowered | Verdict:
        """The plan of a source on all cases, or why there is none.

        Args:
            kernel: the source.
            cases: shapes to lower for; each becomes one ``CasePlan`` of the same name.
            entry: name of the function or class to call; None: ``kernel_function``, else ``ModelNew``.

        Raises:
            DeviceError: the machine is at fault.
        """
        made = self.lower_unless(kernel, cases, lambda _: False, entry)
        assert not isinstance(made, Alike)
        return made

    def lower_unless(
        self,
        kernel: Kernel,
        cases: Sequence[Case],
        known: Callable[[str], bool],
        entry: str | None = None,
    ) -> Lowered | Alike | Verdict:
        """As ``lower``, unless the work on the timed cases is known: then nothing else is compiled.

        Args:
            kernel, cases, entry: as for ``lower``.
            known: asked once the work on the timed cases is known, by its hash.
        """
        source = sources.read(kernel, entry)
        if isinstance(source, Verdict):
            return source
        key = self._key(source, cases)
        kept = self._kept(kernel, key, cases)
        if kept is not None:
            return kept
        with tempfile.TemporaryDirectory(
            dir=self._folder, prefix=SCRATCH, ignore_cleanup_errors=True
        ) as scratch:
            try:
                parts = (self._children, self._binaries, Path(scratch), source, tuple(cases))
                made = _Attempts(*parts, known).run(self._arch)
            except ChildError as why:
                return _verdict(why.status, str(why))
            if not isinstance(made, Lowered):
                return made
            return replace(made, folder=self._plans.put(key, made.folder))

    def built(self, lowered: Lowered, cases: Sequence[Case]) -> Built:
        """What a target hands on: with the profile of the first timed case, else of the first one."""
        name = next((case.name for case in cases if case.timed), cases[0].name)
        profile = self._profiler.profile(lowered.plan, lowered.folder, lowered.plan.case(name))
        return replace(lowered.built, profile=profile)

    @property
    def tally(self) -> Mapping[str, Tally]:
        """What the children have done so far: "trace" and "compile"."""
        return self._children.tally

    def close(self) -> None:
        """End the children."""
        self._children.close()

    def _kept(self, kernel: Kernel, key: str, cases: Sequence[Case]) -> Lowered | None:
        folder = self._plans.use(key)
        if folder is None:
            return None
        try:
            plan = plans.read((folder / PLAN).read_bytes())
            shas = {number: binary.sha for number, binary in enumerate(plan.binaries)}
            return Lowered(kernel, folder, plan, _timed(plan.arch, plan.cases, cases, shas))
        except (OSError, ValidationError):  # the machine stopped before it was on the disk
            self._plans.remove(key)
            return None

    def _key(self, source: sources.Source, cases: Sequence[Case]) -> str:
        card = f"{self._arch} {self._multiprocessors or ''}"
        versions = [verifier_hash(), metadata.version("triton"), card]
        parts = [*versions, source.kernel.sha, source.entry, _CASES.dump_json(tuple(cases)).decode()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class _Attempts:
    """Trace and compile; again with the next configuration of an autotuned function that does not compile."""

    def __init__(
        self,
        children: Children,
        binaries: Binaries,
        scratch: Path,
        source: sources.Source,
        cases: tuple[Case, ...],
        known: Callable[[str], bool],
    ) -> None:
        self._known = known
        self._children = children
        self._binaries = binaries
        self._scratch = scratch
        self._source = source
        self._scope = Scope(source.tree)
        self._cases = cases
        self._turn = children.turn()

    def run(self, arch: str) -> Lowered | Alike | Verdict:
        """The lowered source, in the scratch folder still."""
        asked: dict[str, int] = {}
        for attempt in range(MOST_ATTEMPTS):
            traced = self._traced(attempt, asked)
            if isinstance(traced, Verdict):
                return traced
            wrong = limits.fault(traced, self._cases)
            if wrong:
                return _verdict("rejected", wrong)
            folder = self._scratch / f"compile-{attempt}"
            folder.mkdir()
            try:
                device = cut(self._scope, [spec.function for spec in traced.kernels])
                made = self._compiled(arch, traced, folder)
            except CutError as why:
                return _verdict("rejected", str(why))
            if isinstance(made, Alike):
                return made
            if not isinstance(made, Uncompilable):
                return self._assembled(arch, traced, made, device)
            function = traced.kernels[made.kernel].function
            asked[function] = asked.get(function, 0) + 1
            if attempt + 1 == MOST_ATTEMPTS or asked[function] >= traced.tuned.get(function, 1):
                return _verdict("uncompilable", made.reason)
        raise AssertionError("the last attempt returns")

    def _traced(self, attempt: int, asked: dict[str, int]) -> Traced | Verdict:
        folder = self._scratch / f"trace-{attempt}"
        folder.mkdir()
        (folder / "kernel.py").write_text(self._source.kernel.source)
        job = TraceJob(entry=self._source.entry, cases=self._cases, asked=asked)
        text = self._children.ask("trace", folder, TRACE.dump_json(job), self._turn)
        try:
            answer = TRACE_ANSWER.validate_json(text)
        except ValidationError as why:
            error = why.errors()[-1]
            where = ".".join(map(str, error["loc"]))
            return _verdict("rejected", f"the host function gives no plan: {where}: {error['msg']}"[:300])
        if isinstance(answer, Refusal):
            return _verdict(answer.status, answer.reason)
        return answer

    def _compiled(self, arch: str, traced: Traced, folder: Path) -> list[Made] | Uncompilable | Alike:
        """All binaries: first those of the timed cases, and no more where that work is known."""
        timed = {case.name for case in self._cases if case.timed}
        first = {number for case in traced.cases if case.case in timed for number in launched(case)}
        found: dict[int, Made] = {}
        for name, part in (("timed", first), ("others", set(range(len(traced.kernels))) - first)):
            numbers = sorted(part)
            (folder / name).mkdir()
            specs = [traced.kernels[number] for number in numbers]
            made = self._binaries.of(self._scope, specs, folder / name, self._turn)
            if isinstance(made, Uncompilable):
                return Uncompilable(numbers[made.kernel], made.reason)
            found |= dict(zip(numbers, made, strict=True))
            if part is first:
                shas = {number: one.binary.sha for number, one in found.items()}
                sha = _timed(arch, traced.cases, self._cases, shas)
                if sha is not None and self._known(sha):
                    return Alike(sha)
        return [found[number] for number in range(len(traced.kernels))]

    def _assembled(self, arch: str, traced: Traced, made: Sequence[Made], device: Cut) -> Lowered:
        cases = tuple(without_unused(case) for case in traced.cases)
        binaries = tuple(one.binary for one in made)
        plan = LaunchPlan(arch, MODULE, traced.kernels, binaries, cases, traced.choices)
        folder = self._scratch / "made"
        folder.mkdir()
        for one in made:
            for kind, name in one.binary.files.items():
                (folder / name).write_bytes(one.contents[kind])
        (folder / MODULE).write_text(device.text)
        (folder / PLAN).write_bytes(plans.write(plan))
        shas = {number: binary.sha for number, binary in enumerate(binaries)}
        return Lowered(self._source.kernel, folder, plan, _timed(arch, cases, self._cases, shas))


def _timed(
    arch: str, planned: Sequence[CasePlan], cases: Sequence[Case], shas: Mapping[int, str]
) -> str | None:
    """Hash of the work on the timed cases; None where there are none."""
    names = {case.name for case in cases if case.timed}
    timed = [without_unused(case) for case in planned if case.case in names]
    return plans.work(arch, timed, shas) if timed else None


def _verdict(status: str, reason: str) -> Verdict:
    outcome = (
        Outcome(status)
        if status in ("incorrect", "timed_out", "crashed", "uncompilable")
        else Outcome.REJECTED
    )
    return Verdict(outcome, Stage.BUILD, reason)
