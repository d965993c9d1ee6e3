"""In the child: calls the entry of an exported file, keeps its outputs, tells how long a call takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import torch
import triton
from torch import Tensor
from triton.compiler.errors import CompilationError

from fitness.card import TensorSpec
from fitness.exported import rehearsal
from fitness.exported.jobs import BEGUN, SOURCE, ExportJob, Look
from fitness.exported.witness import Witness, observed
from fitness.lowering import shims
from fitness.lowering.driver import Driver
from fitness.lowering.facts import CARDS
from fitness.lowering.host import watched
from fitness.lowering.refusal import Refused, line_of, one_line
from fitness.lowering.tape import Json, Tape
from fitness.lowering.trace import Incorrect, bound, module, recorded

NAME = "device"  # of the module, as of the cut one that the plan was compiled from: names of binaries hold it
BATCH_S, BATCHES, MOST_CALLS = 0.03, 9, 2000  # of the timed calls
HIGH = 0x7E << 28  # pretended addresses lie as high as those of a real card
CLOCK, SYNCHRONIZE = time.perf_counter, torch.cuda.synchronize  # as they are before the file is run


def report(folder: Path, job: ExportJob) -> Json:
    """A ``Report`` or a ``Fault`` as JSON data."""
    facts = CARDS[job.arch]
    wrong = None if job.pretended else rehearsal.failure()
    if wrong is not None:
        return {"reason": wrong, "machine": True}
    (folder / BEGUN).touch()
    torch.set_grad_enabled(False)
    witness = Witness(facts, job.choices)
    if job.pretended:
        triton.runtime.driver.set_active(Absent(facts))
        shims.install(facts)
    witness.listen()
    try:
        with watched(Tape(), lenient=True) if job.pretended else nullcontext():
            called = getattr(module(folder / SOURCE, NAME), job.entry, None)
        if not callable(called):
            raise Refused(f"{job.entry} is not a function or class once the module has run")
        seen = [_Calls(witness, called, look, folder, pretended=job.pretended).seen() for look in job.looks]
    except (Refused, Incorrect) as why:
        return {"reason": str(why)}
    except torch.OutOfMemoryError:
        return {"reason": "there is too little device memory beside the judge's", "machine": True}
    except BaseException as why:  # untrusted code may raise anything
        line = line_of(why.__traceback__)
        where = f"line {line}: " if line is not None else ""
        return {"reason": f"{where}the exported file raised {one_line(_innermost(why))}"}
    kernels = [witness.binaries[number] for number in range(len(witness.kernels))]
    return {"kernels": kernels, "seen": seen}


class Absent(Driver):
    """Lowering's card that is not there: it loads real kernels, and launches none of them."""

    def launcher_cls(self, source: object, metadata: object) -> Callable[..., None]:  # noqa: ARG002
        """What stands for Triton's launcher."""
        return lambda *_: None

    def load_binary(self, *_: object) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills, and threads that one program may have."""
        return 1, 1, 32, 0, 1024

    def unload_module(self, *_: object) -> None:
        """Nothing was loaded."""


class _Calls:
    """The calls on one case."""

    def __init__(
        self, witness: Witness, called: Callable[..., Any], look: Look, folder: Path, *, pretended: bool
    ) -> None:
        self._witness, self._look, self._folder = witness, look, folder
        self._pretended = pretended
        self._device = "meta" if pretended else "cuda"
        self._function, self._bind = bound(called, look.case)
        case = look.case
        self._given = [
            _input(spec, folder, name, self._device)
            for spec, name in zip(case.inputs + case.parameters, look.inputs, strict=True)
        ]

    def seen(self) -> Json:
        """Two recorded calls, the timed ones where they are asked for, and one more: its outputs are kept.

        Where the first one tuned a function, it also reset what trials would have written, and is left out.
        """
        self._witness.tuning = False
        first, _ = self._recorded()
        calls = [] if self._witness.tuning else [first]
        calls.append(self._recorded()[0])
        wall = self._wall_s() if self._look.timed and not self._pretended else None
        last, outputs = self._recorded()
        if not self._pretended:
            for name, output in zip(self._look.outputs, outputs, strict=False):
                _keep(output, self._folder / name)
        wall_us = None if wall is None else wall * 1e6
        return {"case": self._look.case.name, "calls": [*calls, last], "wall_us": wall_us}

    def _recorded(self) -> tuple[Json, list[Tensor]]:
        witness, case = self._witness, self._look.case
        tape = witness.tape = Tape(device=self._device, salt=HIGH if self._pretended else 1)
        witness.stream = 0 if self._pretended else torch.cuda.current_stream().cuda_stream
        witness.listening = True
        try:
            watching = watched if self._pretended else observed
            made = recorded(self._function, self._bind, case, tape, self._given, watching)
            if not self._pretended:
                SYNCHRONIZE()
        finally:
            witness.listening = False
        return made

    def _wall_s(self) -> float:
        """Host time of one call: a batch of calls and one synchronisation, divided by their number.

        The median over batches. Whatever a call costs the host is in it, and the device's work where that
        takes longer; inputs stay the same, so they may lie in the device's cache.
        """
        count = len(self._look.case.inputs)
        given = self._given[:count] if self._bind else self._given

        def batch(calls: int) -> float:
            SYNCHRONIZE()
            start = CLOCK()
            for _ in range(calls):
                self._function(*given)
            SYNCHRONIZE()
            return (CLOCK() - start) / calls

        calls = max(1, min(MOST_CALLS, int(BATCH_S / min(batch(1) for _ in range(3)))))
        return median(batch(calls) for _ in range(BATCHES))


def _innermost(why: BaseException) -> BaseException:
    """What a compiler's error is about: the error that caused it, without the listings around it."""
    while why.__cause__ is not None:
        why = why.__cause__
    said = getattr(why, "error_message", None)
    return type(why)(None, None, said) if isinstance(why, CompilationError) and said else why


def _input(spec: TensorSpec, folder: Path, name: str | None, device: str) -> Tensor:
    """An input in memory of its own: from a file's bytes, or any floats."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    made = torch.empty(spec.shape, dtype=dtype, device=device)
    if device == "meta":
        return made
    if name is None:
        return made.copy_(torch.rand(spec.shape, dtype=torch.float32, device=device))
    data = torch.empty(spec.nbytes, dtype=torch.uint8)
    with (folder / name).open("rb") as file:
        file.readinto(data.numpy())  # type: ignore[arg-type]  # a buffer
    return made.copy_(data.view(dtype).view(spec.shape))


def _keep(output: Tensor, path: Path) -> None:
    data = output.contiguous().reshape(-1).view(torch.uint8).cpu()
    data.numpy().tofile(path)
