"""Runs one case of a plan over the judge's data: fills, copies and launches in order, then the outputs."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import TypeAdapter
from triton.runtime.errors import InterpreterError

from fitness.interpreter import MOST_PROGRAMS
from fitness.interpreter.foreign import Foreign, foreign_in
from fitness.interpreter.memory import Memory
from fitness.interpreter.module import FILE, Kernel, load, waits
from fitness.interpreter.numbers import Array
from fitness.plan import CasePlan, Constant, Copy, Count, Fill, KernelSpec, Launch, Step

Reply = dict[str, Any]


class Execution:
    """One case of a plan, its module loaded.

    Args:
        module: text of the cut module.
        kernels: the plan's.
        case: the plan of the case.

    Raises:
        Exception: what the module raises.
    """

    def __init__(self, module: str, kernels: object, case: object) -> None:
        self._specs = TypeAdapter(tuple[KernelSpec, ...]).validate_python(kernels)
        self._case = TypeAdapter(CasePlan).validate_python(case)
        self._module = load(module)
        self._kernels: dict[int, Kernel] = {}
        self._memory = Memory(self._case.storages, self._case.arguments)
        self._waits = waits(module)
        self._backwards = False

    def run(self, inputs: Sequence[Array], outputs: Sequence[torch.Tensor]) -> Reply:
        """Run the case once; every second time its programs in reverse order, unless they may wait.

        No order is promised on a device: a program that takes what its neighbour left shows.

        Args:
            inputs: bytes of the arguments.
            outputs: buffers that hold poison; what the plan leaves alone stays poisoned.

        Returns:
            {} where it ran, else {"outcome", "reason"}.
        """
        self._memory.renew(inputs)
        views = [self._memory.tensor(view) for view in self._case.outputs]
        for at, view, output in zip(self._case.outputs, views, outputs, strict=True):
            if at.storage >= self._case.arguments:
                view.copy_(output)
        for step in self._case.steps:
            self._step(step)
        self._backwards = not self._backwards and not self._waits
        damaged = self._memory.damage()
        if damaged is not None:
            what = next((i for i, v in enumerate(self._case.outputs) if v.storage == damaged), None)
            where = f"output {what}" if what is not None else f"buffer {damaged}"
            return {"outcome": "incorrect", "reason": f"memory beside {where} was overwritten"}
        for view, output in zip(views, outputs, strict=True):
            output.copy_(view)
        return {}

    def _step(self, step: Step) -> None:
        if isinstance(step, Launch):
            self._launch(step)
            return
        into = self._memory.tensor(step.into)
        if isinstance(step, Fill):
            into.fill_(step.value)
        elif isinstance(step, Copy):
            into.copy_(self._memory.tensor(step.source))
        elif isinstance(step, Constant):
            into.copy_(torch.tensor(step.values, dtype=into.dtype).view(into.shape))
        elif isinstance(step, Count):
            whole = isinstance(step.start, int) and isinstance(step.step, int)
            numbers = torch.arange(into.numel(), dtype=torch.int64 if whole else torch.float64)
            into.copy_((step.start + step.step * numbers).view(into.shape))

    def _launch(self, step: Launch) -> None:
        x, y, z = step.grid
        if x * y * z > MOST_PROGRAMS:
            raise Foreign(f"a grid of {x * y * z} programs is not interpreted (at most {MOST_PROGRAMS} are)")
        if self._specs[step.kernel].options.get("launch_cooperative_grid"):
            raise Foreign("a cooperative grid is not interpreted (its programs run one after the other)")
        if step.kernel not in self._kernels:
            self._kernels[step.kernel] = Kernel(self._specs[step.kernel], self._module)
        kernel = self._kernels[step.kernel]
        kernel.launch(step.grid, step.arguments, self._memory.tensor, backwards=self._backwards)


def reply_to(error: BaseException) -> Reply:
    """What an exception says of a kernel: crashed, or lowered where it asks for what is not known here."""
    foreign = foreign_in(error)
    if foreign is not None:
        return {"outcome": "lowered", "reason": str(foreign)}
    root = error
    while root.__cause__ is not None and isinstance(root, InterpreterError):
        root = root.__cause__
    if isinstance(root, NotImplementedError):
        return {"outcome": "lowered", "reason": f"not interpreted: {_one_line(str(root))}"}
    said = _one_line(f"{type(root).__name__}: {root}" if str(root) else type(root).__name__)
    frames = [frame for frame in traceback.extract_tb(root.__traceback__) if frame.filename == FILE]
    if not frames:
        return {"outcome": "crashed", "reason": f"raised {said}"}
    last = frames[-1]
    source = _one_line(linecache.getline(FILE, last.lineno or 0).strip())
    return {"outcome": "crashed", "reason": f"{last.name} raised {said}, at: {source}"}


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:160] + " …"
