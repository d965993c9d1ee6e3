"""Running a launch plan: kernels rebuilt from their binaries, arguments bound to the judge's own buffers.

Nothing of the candidate's source is here. What the plan says is checked before it is used: Triton 3.6 writes
C code from a kernel's signature, and a view must lie inside its storage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from triton.compiler.compiler import CompiledKernel
from triton.runtime.errors import OutOfResources
from triton.tools.tensor_descriptor import TensorDescriptor

from fitness import plan as plans
from fitness.card import Case
from fitness.judge.cuda.sets import DeviceSets
from fitness.judge.rig import KernelDied
from fitness.plan import Binary, CasePlan, KernelSpec, LaunchPlan, View
from populations.dtypes import ITEM_BYTES
from populations.verdict import Outcome

Run = Callable[[], object]
FIRST_S = 30.0  # for loading a plan's kernels; a new signature's launcher is compiled under Triton 3.6
KEPT = 256  # kernels that stay loaded
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")
_TYPE = re.compile(
    r"\*?k?(fp|bf|u|i)(1|8|16|32|64)(e4m3|e5m2|e4nv|e5|b15)?|constexpr|\*i1|nvTmaDesc"
    r"|tensordesc<[a-z0-9]+\[[0-9, ]+\](,[^;{}\"'()]*)?>"
)
# faults after which a process cannot use the device any more
_STICKY = ("illegal", "misaligned", "launch failure", "assert", "unspecified", "hardware", "stack")


Watched = Callable[[float | None], None]


class Watch:
    """While a kernel runs, somebody outside waits for this process and ends it where it takes too long.

    Args:
        watched: told the limit in seconds before, and None after.

    Attributes:
        lost: whether a fault left this process without the device.
    """

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.lost = False

    @contextmanager
    def __call__(self, limit_s: float) -> Iterator[None]:
        """Within it, what the device says of a kernel becomes KernelDied."""
        self._watched(limit_s)
        try:
            yield
        except OutOfResources as why:
            raise KernelDied(Outcome.CRASHED, f"does not fit the device: {why}") from None
        except torch.OutOfMemoryError:
            raise KernelDied(Outcome.CRASHED, "ran out of device memory") from None
        except RuntimeError as why:
            message = " ".join(str(why).split("\n")[0].split())[:160]
            if "CUDA" not in message and "HIP" not in message:
                raise
            self.lost = self.lost or any(word in message for word in _STICKY)
            reason = message.replace("CUDA error: ", "device fault: ")
            raise KernelDied(Outcome.CRASHED, reason) from None
        finally:
            self._watched(None)


class PlanLauncher:
    """The plan of one case, bound to argument sets (see fitness.judge.rig.Launcher). A context manager.

    Args:
        kernel: the plan's file, its binaries beside it.
        case: which of its cases.
        sets: what it runs over.
        watch: over kernels that run.

    Raises:
        KernelDied: it does not fit the device.
    """

    def __init__(self, kernel: Path, case: Case, sets: DeviceSets, watch: Watch) -> None:
        self._watch = watch
        plan = _read(kernel)
        todo = plan.case(case.name)
        _check(todo, case)
        with watch(FIRST_S):
            used = {step.kernel for step in todo.steps if isinstance(step, plans.Launch)}
            loaded = {at: _kernel(kernel.parent, plan.kernels[at], plan.binaries[at]) for at in used}
            self._bound = [_bind(todo, loaded, sets, k) for k in range(sets.count)]

    def enqueue(self, first: int, count: int) -> None:
        """Put the steps of some sets into the current stream."""
        for run, _ in self._bound[first : first + count]:
            for step in run:
                step()

    def collect(self, first: int, count: int) -> None:
        """Bring outputs that the plan keeps elsewhere to where the judge reads them."""
        for _, collect in self._bound[first : first + count]:
            for step in collect:
                step()

    def block(self, first: int, count: int, timeout_s: float) -> None:
        """See Launcher."""
        with self._watch(timeout_s):
            self.enqueue(first, count)
            torch.cuda.synchronize()
            self.collect(first, count)

    def __enter__(self) -> PlanLauncher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the buffers."""
        self._bound = []


@lru_cache(maxsize=8)
def _read(path: Path) -> LaunchPlan:
    return plans.read(path.read_bytes())


def _check(todo: CasePlan, case: Case) -> None:
    """A plan that lowering could not have written is a broken machine, not a bad kernel."""
    read = [spec.nbytes for spec in (*case.inputs, *case.parameters)]
    wanted = [(spec.shape, spec.dtype) for spec in case.outputs]
    if todo.arguments != len(read) or list(todo.storages[: len(read)]) != read:
        raise ValueError(f"the plan of case {case.name} is for other arguments")
    if [(view.shape, view.dtype) for view in todo.outputs] != wanted:
        raise ValueError(f"the plan of case {case.name} has other outputs")
    if any(view.storage < todo.arguments for view in todo.outputs):
        raise ValueError(f"the plan of case {case.name} returns an input")
    if sum(todo.storages[len(read) :]) > plans.SCRATCH_BYTES + sum(spec.nbytes for spec in case.outputs):
        raise ValueError(f"the plan of case {case.name} asks for too much scratch")


def _kernel(folder: Path, spec: KernelSpec, binary: Binary) -> Any:
    for text in (binary.name, spec.function, *spec.parameters):
        if not _NAME.fullmatch(text):
            raise ValueError(f"{text[:40]!r} is no name")
    for kind in spec.signature.values():
        if not (isinstance(kind, str) and _TYPE.fullmatch(kind)):
            raise ValueError(f"{str(kind)[:40]!r} is no type of a kernel's argument")
    files = sorted(str(folder / Path(file).name) for file in binary.files.values())
    return _loaded(binary.sha, _Source(spec), tuple(files))


class _Source:
    """What Triton's launcher asks of the source of a kernel; equal for equal launchers.

    Constants are compiled in and all pointers launch alike. A launcher is told of neither, so that kernels
    share theirs: Triton 3.6 runs the C compiler for each new one.

    Attributes:
        takes: which of the kernel's parameters a launch passes.
    """

    def __init__(self, spec: KernelSpec) -> None:
        kinds = list(spec.signature.values())
        self.takes = tuple(at for at, kind in enumerate(kinds) if kind != "constexpr")
        self.fn = SimpleNamespace(arg_names=[f"argument{at}" for at in self.takes], launch_metadata=None)
        launched = ("*i8" if kinds[at].startswith("*") else kinds[at] for at in self.takes)
        self.signature = dict(zip(self.fn.arg_names, launched, strict=True))
        self.constants: dict[tuple[int, ...], object] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Source) and self.signature == other.signature

    def __hash__(self) -> int:
        return hash(tuple(self.signature.items()))


@lru_cache(maxsize=KEPT)
def _loaded(sha: str, source: _Source, files: tuple[str, ...]) -> Any:
    return CompiledKernel(source, {Path(path).name: path for path in files}, sha)


def _bind(todo: CasePlan, kernels: dict[int, Any], sets: DeviceSets, k: int) -> tuple[list[Run], list[Run]]:
    """The steps of a plan over set ``k``, and what collects its outputs."""
    direct = _direct(todo)
    scratch = [size for at, size in enumerate(todo.storages) if at >= todo.arguments and at not in direct]
    own = iter(sets.scratch(k, scratch))
    storages = []
    for at in range(len(todo.storages)):
        if at < todo.arguments:
            storages.append(sets.buffers[k][at].data)
        elif at in direct:
            storages.append(sets.buffers[k][todo.arguments + direct[at]].data)
        else:
            storages.append(next(own).data)
    run = [_step(step, kernels, storages) for step in todo.steps]
    outputs = zip(sets.outputs(k), todo.outputs, strict=True)
    collect = [_copy(_tensor(view, storages), out) for out, view in outputs if view.storage not in direct]
    return run, collect


def _direct(todo: CasePlan) -> dict[int, int]:
    """Storages that are exactly one output, by which."""
    found = {}
    for number, view in enumerate(todo.outputs):
        alone = sum(other.storage == view.storage for other in todo.outputs) == 1
        whole = view.offset == 0 and _count(view) * ITEM_BYTES[view.dtype] == todo.storages[view.storage]
        if alone and whole and view.strides == _dense(view.shape):
            found[view.storage] = number
    return found


def _step(step: plans.Step, kernels: dict[int, Any], storages: list[Tensor]) -> Run:
    if isinstance(step, plans.Launch):
        kernel = kernels[step.kernel]
        launch = kernel[step.grid]
        arguments = [_argument(step.arguments[at], storages) for at in kernel.src.takes]
        return lambda: launch(*arguments)
    into = _tensor(step.into, storages)
    if isinstance(step, plans.Fill):
        return lambda: into.fill_(step.value)
    if isinstance(step, plans.Copy):
        return _copy(_tensor(step.source, storages), into)
    if isinstance(step, plans.Constant):
        return _copy(torch.tensor(step.values, dtype=into.dtype, device=into.device).view(into.shape), into)
    count = torch.arange(into.numel(), dtype=torch.float64, device=into.device)
    return _copy((count * step.step + step.start).to(into.dtype).view(into.shape), into)


def _copy(source: Tensor, into: Tensor) -> Run:
    return lambda: into.copy_(source)


def _argument(argument: plans.Argument, storages: list[Tensor]) -> object:
    if isinstance(argument, plans.Scalar):
        return argument.value
    tensor = _tensor(argument.view, storages)
    if isinstance(argument, plans.Pointer):
        return tensor
    block = list(argument.block)
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block, argument.padding)


def _tensor(view: View, storages: list[Tensor]) -> Tensor:
    """The view over the judge's memory; PyTorch refuses one that leaves its storage."""
    dtype: torch.dtype = getattr(torch, view.dtype)
    size = ITEM_BYTES[view.dtype]
    data = storages[view.storage]
    reach = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    if (_count(view) and (reach + 1) * size > data.numel()) or min((view.offset, *view.strides, 0)) < 0:
        raise ValueError("a view leaves its storage")
    whole = data[: data.numel() // size * size].view(dtype)
    return whole.as_strided(view.shape, view.strides, whole.storage_offset() + view.offset)


def _count(view: View) -> int:
    count = 1
    for extent in view.shape:
        count *= extent
    return count


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
