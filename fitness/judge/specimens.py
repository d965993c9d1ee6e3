"""What a launch plan does on a case, in files: for whoever runs the same kernel elsewhere and compares."""

from __future__ import annotations

import secrets
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fitness.card import TensorSpec
from fitness.judge.gate import LARGE_S, describe, judged
from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.place import place
from fitness.judge.problem import Problem
from fitness.judge.rig import KernelDied, Rig
from fitness.target import DeviceError
from populations.text import open_left

OUTPUT = "compared-out-{}"  # names of files
WRITTEN_BYTES = 64 << 20  # of an input whose values do not matter
RUNS = 8  # of a plan on a small case: where programs end in another order now and then, two runs may agree
SMALL_BYTES = 256 << 20  # of all runs' arguments


class Specimens:
    """Inputs and outputs of one problem's kernels.

    Args:
        problem: the loaded problem.
        rig: how kernels run.
    """

    def __init__(self, problem: Problem, rig: Rig) -> None:
        self._problem = problem
        self._rig = rig
        self._last: tuple[LoadedCase, Draw] | None = None  # None: nothing was sampled yet

    def sample(self, kernel: str, case: str, inputs: str, outputs: str | None) -> dict[str, Any]:
        """Fresh inputs, and what a few runs on them give.

        Args:
            kernel: what the target built.
            case: name of the case.
            inputs: folder for the inputs' and parameters' bytes.
            outputs: folder for those of the first run's outputs; None: the inputs alone, for timing.

        Returns:
            ``inputs``: names of files, None for a large one of floats that is not needed; ``outputs``:
            names; ``alike``: whether all runs gave the same bytes.

        Raises:
            DeviceError: the kernel died.
        """
        loaded = next(each for each in self._problem.cases if each.case.name == case)
        draw = loaded.draw(secrets.token_hex(16), checking=outputs is not None)
        given = draw.inputs + draw.parameters
        names: list[str | None] = []
        for number, tensor in enumerate(given):
            needless = outputs is None and tensor.is_floating_point() and tensor.nbytes > WRITTEN_BYTES
            name = f"{'timed' if outputs is None else 'compared'}-in-{number}"
            names.append(None if needless else name)
            if not needless:
                _write(tensor, Path(inputs) / name)
        if outputs is None:
            _let_go()
            return {"inputs": names, "outputs": [], "alike": None}
        self._last = (loaded, draw)
        first, alike = self._runs(Path(kernel), loaded, given)
        made = [OUTPUT.format(number) for number in range(len(first))]
        for name, tensor in zip(made, first, strict=True):
            _write(tensor, Path(outputs) / name)
        _let_go()
        return {"inputs": names, "outputs": made, "alike": alike}

    def hold(self, folder: str) -> dict[str, Any]:
        """Whether outputs in files hold on the inputs last compared: ``reason`` is None, or what is wrong.

        Args:
            folder: with files named as ``sample`` named them; untrusted code wrote them.
        """
        if self._last is None:
            raise DeviceError("the judge was asked about outputs before it drew inputs")
        loaded, draw = self._last
        outputs = []
        for number, spec in enumerate(loaded.case.outputs):
            tensor = _read(Path(folder) / OUTPUT.format(number), spec)
            if tensor is None:
                return {"reason": f"file of another size than output {spec.name}"}
            outputs.append(tensor)
        found = judged(loaded, draw, outputs)
        return {"reason": None if found.max_error <= 1.0 else describe(found, loaded.case.name)}

    def _runs(self, kernel: Path, loaded: LoadedCase, given: list[Tensor]) -> tuple[list[Tensor], bool]:
        """The first run's outputs, and whether the others gave the same bytes."""
        case = loaded.case
        read_only = len(case.inputs) + len(case.parameters)
        count = RUNS if RUNS * sum(spec.nbytes for spec in case.arguments) <= SMALL_BYTES else 2
        with closing(self._rig.sets(case.arguments, read_only, count)) as sets:
            for index in range(count):
                for buffer, tensor in zip(sets.inputs(index), given, strict=True):
                    buffer.copy_(tensor)
            try:
                with self._rig.launcher(kernel, case, sets) as launcher:
                    for index in range(count):
                        sets.poison(index, index + 1)
                        launcher.block(index, 1, LARGE_S)
            except KernelDied as death:
                raise DeviceError(f"a plan that passed the gate {death.reason} on case {case.name}") from None
            first = [each.clone() for each in sets.outputs(0)]
            alike = all(
                torch.equal(_bytes(one), _bytes(other))
                for index in range(1, count)
                for one, other in zip(first, sets.outputs(index), strict=True)
            )
        return first, alike


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _write(tensor: Tensor, path: Path) -> None:
    _bytes(tensor).cpu().numpy().tofile(path)


def _read(path: Path, spec: TensorSpec) -> Tensor | None:
    """A tensor from a file's bytes; None where they are not that many."""
    data = torch.empty(spec.nbytes, dtype=torch.uint8)
    try:
        with open_left(path) as file:
            whole = file.readinto(data.numpy()) == spec.nbytes and file.read(1) == b""  # type: ignore[arg-type]
    except OSError:
        return None
    dtype: torch.dtype = getattr(torch, spec.dtype)
    return data.view(dtype).view(spec.shape).to(place()) if whole else None


def _let_go() -> None:
    """Give cached device memory back: another process is about to need it."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
