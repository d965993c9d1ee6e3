"""Kernels without a device: launch plans run by Triton's interpreter, numbers checked, nothing timed.

``Interpreted`` stands where a runner stands on a CPU: the judge fills and poisons a set of arguments, the
confined child runs the plan over a copy of them, and what it made lies in the set's outputs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from fitness import machine, plan
from fitness.card import Case, TensorSpec
from fitness.interpreter import MOST_PROGRAMS
from fitness.interpreter.client import Interpreter
from fitness.judge.bench import Bench
from fitness.judge.buffers import ArgumentSets, Slot
from fitness.judge.course import Course
from fitness.judge.loaded import LoadedCase
from fitness.judge.problem import Problem
from fitness.judge.rig import Check, Contender, KernelDied, Sets
from fitness.plan import CasePlan, Launch, LaunchPlan
from fitness.target import DeviceError
from populations.calibration import Calibration, Floor
from populations.verdict import Outcome, Stage, Verdict

SLOWER = 6  # how much more time than a compiled kernel an interpreted one is given
CPU_S = 300
MEMORY = 6 << 30  # address space; the imports alone take one
MEMORY_OF_CASES = 512 << 20  # larger ones would take minutes
SIGNALS = {
    signal.SIGSEGV: "segmentation fault (it went outside its arguments, or wrote to an input)",
    signal.SIGBUS: "bus error",
    signal.SIGABRT: "aborted",
    signal.SIGKILL: "killed from outside (ran out of memory?)",
    signal.SIGXCPU: "used up its processor time",
    signal.SIGSYS: "made a system call that is not allowed",
}


class Interpreted:
    """One case of a plan in a confined child, run set by set. A context manager, like ``Runner``.

    Args:
        kernel: the plan's file; the cut module lies beside it.
        case: name of the case.
        sets: what it is run on.
        interpreter: whose child it is.
        sandboxed: False: use what protection the system has, and don't insist.

    Raises:
        KernelDied: the plan has no such case.
    """

    def __init__(
        self, kernel: Path, case: str, sets: ArgumentSets, interpreter: Interpreter, *, sandboxed: bool
    ) -> None:
        lowered = plan.read(kernel.read_bytes())
        try:
            found = lowered.case(case)
        except KeyError:
            raise KernelDied(Outcome.LOWERED, "it was not lowered") from None
        self._scratch = tempfile.TemporaryDirectory(prefix="interpreted-")
        order = {
            "module": (kernel.parent / lowered.module).read_text(),
            **json.loads(_parts(lowered, found)),
            **_places(sets),
            "scratch": self._scratch.name,
            "sandboxed": sandboxed,
            "cpu_s": CPU_S,
            "memory": MEMORY,
        }
        with contextlib.ExitStack() as ours:
            inputs = sets.read_only_file()
            ours.callback(_close, inputs)
            self._channel = interpreter.fork(order, inputs, sets.outputs_file())
        self._ended: KernelDied | None = None

    def block(self, first: int, count: int, timeout_s: float) -> None:
        """Run sets ``first`` to ``first + count - 1``, each exactly once, each for ``timeout_s`` at most.

        Interpreted kernels are given ``SLOWER`` times as long as compiled ones.

        Raises:
            KernelDied: the child ended, took longer, or the kernel raised; ``lowered`` where it asks for
                something that the interpreter does not know.
            DeviceError: the child cannot be confined here.
        """
        for index in range(first, first + count):
            if self._ended is not None:
                raise self._ended
            limit_s = SLOWER * timeout_s
            with contextlib.suppress(OSError):  # a child that is gone has said so
                self._channel.send(json.dumps({"set": index}).encode())
            if not select.select([self._channel], [], [], limit_s)[0]:
                raise self._end(Outcome.TIMED_OUT, f"no end within {limit_s:.3g} s of interpretation")
            self._understand(index, self._channel.recv(1 << 16))

    def close(self) -> None:
        """End the child. Returns when nothing of it is left; safe to call twice."""
        if self._channel.fileno() < 0:
            return
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        while select.select([self._channel], [], [], 10.0)[0]:
            try:
                if not self._channel.recv(1 << 16):
                    break
            except OSError:
                break
        self._channel.close()
        self._scratch.cleanup()

    def __enter__(self) -> Interpreted:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _understand(self, index: int, packet: bytes) -> None:
        """One reply; nothing in it is believed but that the child is done."""
        if packet.startswith(b"sandbox:"):
            self.close()
            raise DeviceError(
                f"the interpreter cannot be confined: {packet.decode(errors='replace').strip()}"
            )
        try:
            reply = json.loads(packet)
            ended, outcome = reply.get("ended"), reply.get("outcome")
            if ended is None and outcome is None and reply["set"] == index:
                return
            if outcome in (Outcome.CRASHED, Outcome.INCORRECT, Outcome.LOWERED):
                raise self._end(Outcome(outcome), str(reply["reason"])[:500])
            reason = _ending(ended)
        except (ValueError, KeyError, TypeError, AttributeError):
            reason = "wrote to the reply channel" if packet else "ended before it replied"
        raise self._end(Outcome.CRASHED, reason)

    def _end(self, outcome: Outcome, reason: str) -> KernelDied:
        self._ended = KernelDied(outcome, reason)
        self.close()
        return self._ended


class InterpreterRig:
    """No device at all: numbers by the interpreter, no times (see fitness.judge.rig.Rig).

    Args:
        interpreter: the process that runs plans.
        sandboxed: whether its children are confined.
    """

    policies: tuple[str, ...] = ()
    rounds = 0
    numerics = "interpreter"
    fuses = False
    repeats = True
    lost = False
    memory_bytes: int | None = MEMORY_OF_CASES

    def __init__(self, interpreter: Interpreter, *, sandboxed: bool) -> None:
        self._interpreter = interpreter
        self._sandboxed = sandboxed
        self.isolation = "process" if sandboxed else "weak"
        self.cache_bytes = machine.cache_bytes()
        self.facts = {**machine.facts(), "torch": torch.__version__}

    def telemetry(self) -> dict[str, str]:
        """See Rig."""
        return {}

    def baselines(self, loaded: LoadedCase) -> tuple[str, ...]:  # noqa: ARG002
        """See Rig."""
        return ()

    def sets(self, arguments: Sequence[TensorSpec], read_only: int, count: int) -> ArgumentSets:
        """See Rig."""
        return ArgumentSets(arguments, read_only, count)

    def launcher(self, kernel: Path, case: Case, sets: Sets) -> Interpreted:
        """See Rig."""
        assert isinstance(sets, ArgumentSets)
        return Interpreted(kernel, case.name, sets, self._interpreter, sandboxed=self._sandboxed)

    def course(self, loaded: LoadedCase, policy: str) -> Course:
        """Never asked for: there is no policy."""
        raise NotImplementedError

    def baseline(self, name: str, loaded: LoadedCase, course: Course) -> Contender:
        """Never asked for."""
        raise NotImplementedError

    def contender(self, kernel: Path, case: Case, course: Course, check: Check, limit_s: float) -> Contender:
        """Never asked for."""
        raise NotImplementedError

    def floor(self, case: Case, course: Course, seconds: float) -> Floor:
        """Never asked for."""
        raise NotImplementedError

    def least_block_s(self, course: Course) -> float:
        """Never asked for."""
        raise NotImplementedError

    def quiet(self) -> AbstractContextManager[object]:
        """See Rig."""
        return nullcontext()


class InterpreterBench:
    """Stands where a ``Bench`` does: checks a kernel on the cases that its plan lets the interpreter run.

    Args:
        problem: the loaded problem, its checking inputs strengthened.
        rig: how kernels are run.
        verifier: hash of this verifier.
    """

    def __init__(self, problem: Problem, rig: InterpreterRig, *, verifier: str) -> None:
        self.problem = problem
        self._rig = rig
        self._verifier = verifier

    def calibrate(self) -> Calibration:
        """There is nothing to measure."""
        return Calibration((), (), (), self._rig.facts)

    def screen(self, kernel: Path) -> Verdict:
        """Smoke and search gate."""
        return self._judged(kernel, promotion=False)

    def promote(self, kernel: Path) -> Verdict:
        """All gates and derived cases."""
        return self._judged(kernel, promotion=True)

    def _judged(self, kernel: Path, *, promotion: bool) -> Verdict:
        lowered = plan.read(kernel.read_bytes())
        planned = {case.case: case for case in lowered.cases}
        wanted = [loaded for loaded in self.problem.cases if loaded.case.name in planned]
        skipped = {
            loaded.case.name: why
            for loaded in wanted
            if (why := uninterpreted(planned[loaded.case.name], lowered)) is not None
        }
        runnable = [loaded for loaded in wanted if loaded.case.name not in skipped]
        if not runnable:
            why = next(iter(skipped.values()), "no case of it is small enough")
            return self._unchecked(f"lowered, numbers not checked: {why}")
        bench = Bench(
            replace(self.problem, cases=runnable), self._rig, machine=self._rig.facts, verifier=self._verifier
        )
        verdict = bench.promote(kernel) if promotion else bench.screen(kernel)
        if verdict.status is Outcome.LOWERED:
            return self._unchecked(f"lowered, numbers not checked: {verdict.reason}")
        if verdict.status is Outcome.CORRECT:
            verdict = replace(verdict, reason="correct, not timed")
        notes = tuple(f"{name}: not run by the interpreter: {why}" for name, why in skipped.items())
        derived = any(loaded.case.derived for loaded in self.problem.cases)
        unknown = derived and not any(loaded.case.derived for loaded in runnable)
        general = None if unknown else verdict.general
        return replace(verdict, notes=(*verdict.notes, *notes), general=general)

    def _unchecked(self, reason: str) -> Verdict:
        return Verdict(
            Outcome.LOWERED,
            Stage.BUILD,
            reason,
            numerics="none",
            isolation=self._rig.isolation,
            verifier=self._verifier,
            notes=self.problem.card.notes,
        )


def uninterpreted(case: CasePlan, lowered: LaunchPlan) -> str | None:
    """Why the interpreter can't run a case of a plan, as a phrase; None where it can try."""
    for step in case.steps:
        if not isinstance(step, Launch):
            continue
        x, y, z = step.grid
        if lowered.kernels[step.kernel].options.get("launch_cooperative_grid"):
            return "its programs wait for each other (a cooperative grid)"
        if x * y * z > MOST_PROGRAMS:
            return f"a launch has {x * y * z} programs, more than {MOST_PROGRAMS}"
    return None


def _parts(lowered: LaunchPlan, case: CasePlan) -> str:
    """The kernels and the case of a plan as JSON text."""
    whole = json.loads(plan.write(lowered))
    chosen = next(each for each in whole["cases"] if each["case"] == case.case)
    return json.dumps({"kernels": whole["kernels"], "case": chosen})


def _places(sets: ArgumentSets) -> dict[str, Any]:
    """Where a set's arguments lie in the shared files."""

    def place(slot: Slot) -> dict[str, Any]:
        spec = slot.spec
        at = slot.offset + slot.start
        return {"at": at, "bytes": spec.nbytes, "dtype": spec.dtype, "shape": list(spec.shape)}

    slots = [place(slot) for slot in sets.slots]
    return {
        "inputs": slots[: sets.read_only],
        "outputs": slots[sets.read_only :],
        "strides": list(sets.strides),
    }


def _ending(ended: dict[str, int]) -> str:
    if "signal" in ended:
        return SIGNALS.get(signal.Signals(ended["signal"]), f"killed by signal {ended['signal']}")
    return f"exited with status {ended['status']} before it replied"


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)
